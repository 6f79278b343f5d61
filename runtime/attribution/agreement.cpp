// Agreement on one part: a fault sits in one GPU or one NIC, so its graded signals name the same
// one; chance episodes name any (README 16).
//
// Each graded signal i of the fault that shows events names a part d_i (most of its events do). It
// is the fault's doing with chance a_i = p r / (1 - p + p r) (r: the likelihood ratio of its counts),
// and then names the fault's part with chance rho; else any of k parts alike. Over the unknown part:
//   LR = 1/k sum_g prod_i (rho a_i k [d_i = g] + 1 - rho a_i).
// A healthy node's signals agree now and then as well, since one harmless event shows in several
// ways: LR / (1 - b + b LR). What lies within an hour altogether is such an event for sure.
#include <algorithm>
#include <cmath>

#include "runtime/abi/gpu_address.h"
#include "runtime/attribution/scorer.h"

namespace reflex::attribution {
namespace {

// Why: a node has eight GPUs and four to eight ports; the exact number moves a weight by half a nat.
constexpr double kParts = 8;
// Why: events of one fault name a neighbour now and then (a switch port, a peer's retry).
constexpr double kNamesOwnPart = 0.8;
// Why: one flap is retries, symbol errors and pauses on one port; wear takes days.
constexpr int64_t kOneEventNs = kNsPerHour;
constexpr double kHarmlessAgreement = 0.1;

/// log LR of signals that name parts of one kind.
double log_ratio(const std::vector<NamedPart>& named, std::vector<uint64_t>& parts) {
  double nobody = 1;  // a part that no signal names
  for (const NamedPart& n : named) nobody *= 1 - n.share;
  parts.clear();
  for (const NamedPart& n : named) parts.push_back(n.part);
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  double sum = std::max(0.0, kParts - static_cast<double>(parts.size())) * nobody;
  for (const uint64_t part : parts) {
    double product = 1;
    for (const NamedPart& n : named) {
      product *= (n.part == part ? n.share * kParts : 0) + 1 - n.share;
    }
    sum += product;
  }
  const double ratio = sum / std::max(kParts, static_cast<double>(parts.size()));
  return std::log(ratio / (1 - kHarmlessAgreement + kHarmlessAgreement * ratio));
}

}  // namespace

// A fault weighs the same in this on each part of its node, and these candidates come in a row.
double Scorer::agreement_nats(const Candidate& c) const {
  if (last_agreement_.cause != c.cause || last_agreement_.row != c.row) {
    last_agreement_ = {c.cause, c.row, agreement(c).nats};
  }
  return last_agreement_.nats;
}

Scorer::Agreement Scorer::agreement(const Candidate& c) const {
  Agreement out;
  if (c.row == kNoNode || !field_.input().switches.agreement) return out;
  const PackShape& shape = field_.shape();
  if (shared_bits(field_.shown(c.row), shape.causes[c.cause].naming.data(), shape.words) < 2) {
    return out;
  }
  // Most name nothing together: their likelihood ratios are never asked for.
  std::vector<std::pair<uint32_t, const Span*>>& naming = scratch_naming_;
  naming.clear();
  int64_t from_ns = INT64_MAX;
  int64_t to_ns = INT64_MIN;
  uint32_t key = 0;
  for (const uint32_t edge : graph_.cause_edges[c.cause]) {
    const abi::EdgePlan& e = pack_.edges[edge];
    const uint32_t own_key = shape.part_key[e.to];
    if (own_key == 0 || (key != 0 && own_key != key)) continue;
    if (e.scope != abi::Scope::kSelf || !numbers_.graded(e.to)) continue;
    for (const Span& s : field_.spans(e.to, c.row)) {
      if (field_.episode(s).part == 0 || s.suppressed) continue;
      naming.emplace_back(edge, &s);
      key = own_key;
      from_ns = std::min(from_ns, s.onset_ns);
      to_ns = std::max(to_ns, s.last_ns);
      break;
    }
  }
  if (naming.size() < 2 || to_ns - from_ns < kOneEventNs) return out;
  std::vector<NamedPart>& named = scratch_named_;
  named.clear();
  for (const auto& [edge, s] : naming) {
    const abi::EdgePlan& e = pack_.edges[edge];
    const double pr = field_.strength(e, class_of(c.row)) *
                      numbers_.soft_ratio(e.to, field_.soft(*s), survive_of({}, *s));
    const double active = pr / (1 - field_.strength(e, class_of(c.row)) + pr);
    named.push_back({field_.episode(*s).part, kNamesOwnPart * active});
  }
  out.key = pack_.signals[pack_.edges[naming[0].first].to].count.part_key;
  out.signals = static_cast<uint32_t>(named.size());
  // Sorted: the product must not depend on the order of edges in the pack.
  std::sort(named.begin(), named.end(), [](const NamedPart& a, const NamedPart& b) {
    return a.share != b.share ? a.share > b.share : a.part < b.part;
  });
  for (const NamedPart& n : named) {
    const auto agree = static_cast<uint32_t>(std::count_if(
        named.begin(), named.end(), [&](const NamedPart& other) { return other.part == n.part; }));
    if (agree > out.agree) out.agree = agree, out.part = n.part;
  }
  out.nats = round_nats(log_ratio(named, scratch_parts_) * numbers_.agreement_multiplier() /
                        numbers_.temperature());
  return out;
}

abi::Contribution Scorer::contribution_of(const Agreement& a, const Candidate& c) const {
  abi::Contribution one;
  one.signal = "same " + a.key;
  one.entity = entity_text(c);
  one.scope = "self";
  one.state = a.agree > 1 ? abi::SignalState::kFired : abi::SignalState::kSilent;
  one.nats = a.nats;
  one.entity_count = a.signals;
  one.fired_count = a.agree;
  one.leak = 1 / kParts;
  one.leak_origin = "chance";
  one.rule = pack_.causes[c.cause].where;
  one.signal_where = pack_.causes[c.cause].where;
  return one;
}

}  // namespace reflex::attribution
