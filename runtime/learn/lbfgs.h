// Minimises a smooth function of many variables: limited-memory BFGS with backtracking.
//
// Deterministic: the same function and start give the same bits. Not for functions with kinks.
#pragma once

#include <Eigen/Core>
#include <functional>

namespace reflex::learn {

/// Returns f(x) and sets the gradient.
using Objective = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct MinimizeOptions {
  int iterations = 60;
  int history = 8;
  double tolerance = 1e-6;  // relative decrease of f below which it stops
};

/// Never ends above f(start).
Eigen::VectorXd minimize(const Objective& f, Eigen::VectorXd start,
                         const MinimizeOptions& options = {});

}  // namespace reflex::learn
