// Hazards from facts; see past.h.
#include "runtime/attribution/past.h"

#include <algorithm>
#include <cmath>

namespace reflex::attribution {
namespace {

constexpr double kFactorMin = 0.2;
constexpr double kFactorMax = 50;

// Why steps of a quarter octave: no history is known better, and nodes that are alike in all else
// stay one group for attribution, which keeps jobs of 10,000 nodes fast.
double stepped(double x) {
  const double step = std::exp2(std::round(std::log2(std::max(x, 1e-9)) * 4) / 4);
  return std::clamp(step, kFactorMin, kFactorMax);
}

/// `same`: how much likelier than by the fleet's mix a cause is among what recurs.
double factor(const abi::Past& past, const abi::HistoryLaw& law, double same) {
  double sum = 0;
  double recent = 0;
  for (size_t s = 0; s < abi::kAfterFault; ++s) {
    const double more = law.again[s] - 1;
    // What is rarer after a fault than else is so for all causes.
    sum += past.last[s] * (1 + (more > 0 ? more * same : more));
    recent += past.last[s];
  }
  return sum + std::max(0.0, 1 - recent) * std::pow(past.usual, law.usual);
}

// History says which node, not whether any: the class priors hold the mean rate of faults already,
// and after a month with many repairs every node would look worse than its class. So the hazards of
// a job's nodes are held to a mean of one. Why ten nodes of one more: a job of two has no mean.
void balance(Input& input) {
  constexpr double kPriorNodes = 10;
  double sum = kPriorNodes;
  double count = kPriorNodes;
  for (const auto& view : input.nodes) {
    if (!view.in_job) continue;
    sum += view.hazard;
    count += 1;
  }
  const double mean = sum / count;
  for (auto& view : input.nodes) view.hazard /= mean;
  for (auto& own : input.cause_hazards) own.factor /= mean;
}

}  // namespace

double raw_hazard(const abi::Past& past, const abi::HistoryLaw& law) {
  return factor(past, law, 1);
}

double hazard(const abi::Past& past, const abi::HistoryLaw& law) {
  // A cause that the node never had: only what is not the same cause again.
  return stepped(factor(past, law, past.causes.empty() ? 1 : 1 - law.same_cause));
}

double hazard(const abi::Past& past, const abi::HistoryLaw& law, const abi::Past::Cause& cause) {
  return stepped(
      factor(past, law, law.same_cause * cause.own / cause.fleet + 1 - law.same_cause));
}

void apply_history(Input& input, const abi::HistoryLaw& law) {
  input.cause_hazards.clear();
  for (auto& view : input.nodes) {
    view.hazard = 1;
    view.hazard_origin.clear();
  }
  size_t at = 0;  // pasts stand in the order of nodes
  for (const NodePast& known : input.pasts) {
    while (at < input.nodes.size() && input.nodes[at].node != known.node) ++at;
    if (at == input.nodes.size()) break;
    input.nodes[at].hazard = hazard(known.past, law);
    input.nodes[at].hazard_origin = known.past.origin;
    for (const auto& cause : known.past.causes) {
      input.cause_hazards.push_back({known.node, cause.cause, hazard(known.past, law, cause)});
    }
  }
  balance(input);
  std::sort(input.cause_hazards.begin(), input.cause_hazards.end(),
            [](const auto& a, const auto& b) {
              return std::pair(a.node, a.cause) < std::pair(b.node, b.cause);
            });
}

}  // namespace reflex::attribution
