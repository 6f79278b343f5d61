// Two-loop recursion (Nocedal 1980) with an Armijo line search; see lbfgs.h.
#include "runtime/learn/lbfgs.h"

#include <cmath>
#include <deque>
#include <vector>

namespace reflex::learn {
namespace {

struct Pair {
  Eigen::VectorXd s;  // step
  Eigen::VectorXd y;  // change of the gradient
  double rho = 0;
};

Eigen::VectorXd direction(const std::deque<Pair>& pairs, const Eigen::VectorXd& gradient) {
  Eigen::VectorXd q = gradient;
  std::vector<double> alpha(pairs.size());
  for (size_t i = pairs.size(); i-- > 0;) {
    alpha[i] = pairs[i].rho * pairs[i].s.dot(q);
    q -= alpha[i] * pairs[i].y;
  }
  if (!pairs.empty()) {
    const Pair& last = pairs.back();
    q *= last.s.dot(last.y) / last.y.squaredNorm();
  } else if (const double norm = q.norm(); norm > 1) {
    q /= norm;  // the first step has no curvature to go by
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    const double beta = pairs[i].rho * pairs[i].y.dot(q);
    q += (alpha[i] - beta) * pairs[i].s;
  }
  return -q;
}

}  // namespace

Eigen::VectorXd minimize(const Objective& f, Eigen::VectorXd start,
                         const MinimizeOptions& options) {
  constexpr double kArmijo = 1e-4;
  constexpr int kHalvingsMax = 30;
  Eigen::VectorXd x = std::move(start);
  Eigen::VectorXd gradient(x.size());
  double value = f(x, gradient);
  std::deque<Pair> pairs;
  for (int i = 0; i < options.iterations; ++i) {
    Eigen::VectorXd step = direction(pairs, gradient);
    double slope = step.dot(gradient);
    if (!(slope < 0)) {  // no descent: forget the curvature
      pairs.clear();
      step = direction(pairs, gradient);
      slope = step.dot(gradient);
      if (!(slope < 0)) break;
    }
    double t = 1;
    Eigen::VectorXd next(x.size());
    Eigen::VectorXd next_gradient(x.size());
    double next_value = 0;
    int halvings = 0;
    for (; halvings < kHalvingsMax; ++halvings, t /= 2) {
      next = x + t * step;
      next_value = f(next, next_gradient);
      if (std::isfinite(next_value) && next_value <= value + kArmijo * t * slope) break;
    }
    if (halvings == kHalvingsMax) break;
    Pair pair{next - x, next_gradient - gradient, 0};
    const double sy = pair.s.dot(pair.y);
    if (sy > 1e-12) {
      pair.rho = 1 / sy;
      pairs.push_back(std::move(pair));
      if (pairs.size() > static_cast<size_t>(options.history)) pairs.pop_front();
    }
    const double decrease = value - next_value;
    x = std::move(next);
    gradient = std::move(next_gradient);
    value = next_value;
    if (decrease < options.tolerance * (std::abs(value) + 1)) break;
  }
  return x;
}

}  // namespace reflex::learn
