// WindowRing: see window_ring.h.
#include "runtime/eval/window_ring.h"

#include <algorithm>
#include <cmath>

#include "runtime/eval/quantile.h"

namespace reflex::eval {

void WindowRing::add(const Member& member) {
  const auto at = std::upper_bound(
      members_.begin(), members_.end(), member,
      [](const Member& a, const Member& b) { return a.plan->last_n < b.plan->last_n; });
  members_.insert(at, member);
}

void WindowRing::reserve(StateArena& arena, abi::EntityKindId entity_kind, abi::KindId home,
                         bool stays) {
  uint32_t need = 1;
  for (const Member& m : members_) {
    need = std::max(need, samples_of(*m.plan));
  }
  for (const Member& m : members_) {
    readings_.push_back({m.feature, m.plan->last_n, m.plan->min_samples, m.plan->op,
                         m.plan->exclude_current, m.plan->integer_result, m.plan->quantile});
  }
  // A ring that is only read before its update never skips; 2^k samples then suffice exactly.
  capacity_ = 1;
  while (capacity_ < need) capacity_ *= 2;
  place_ = arena.reserve({StateUse::kSamples, members_[0].feature}, entity_kind, home,
                         sizeof(Header) + size_t{capacity_} * sizeof(double), stays);
}

void WindowRing::save(const char* state, uint32_t most, StateWriter& out) const {
  const auto* header = reinterpret_cast<const Header*>(state);
  const auto* values = reinterpret_cast<const double*>(header + 1);
  const uint32_t n = std::min(header->count, most);
  out.u64(n);
  out.u64(header->order);
  for (uint32_t i = n; i > 0; --i) out.f64(values[(header->next - i) & (capacity_ - 1)]);
}

void WindowRing::read_saved(StateReader& in, uint64_t& order, std::vector<double>& oldest_first) {
  const size_t n = in.count(sizeof(double));
  order = in.u64();
  oldest_first.resize(n);
  for (double& v : oldest_first) v = in.f64();
}

void WindowRing::read(const char* state, uint64_t skip_order, abi::Value* out) const {
  static constexpr char kEmpty[sizeof(Header)] = {};
  if (state == nullptr) state = kEmpty;
  const auto* header = reinterpret_cast<const Header*>(state);
  const auto* values = reinterpret_cast<const double*>(header + 1);
  const uint32_t mask = capacity_ - 1;
  const uint32_t skip = header->count > 0 && header->order == skip_order ? 1 : 0;
  uint32_t from = skip;
  uint32_t seen = 0;
  double sum = 0;
  for (const Reading& plan : readings_) {
    const uint32_t here = plan.exclude_current ? skip : 0;
    const uint32_t have = header->count - here;
    const uint32_t n = std::min(plan.last_n, have);
    if (plan.op == abi::FeatureOp::kCount) {
      const bool known = n >= plan.min_samples || plan.min_samples <= 1;
      out[plan.feature] = !known                ? abi::Value::unknown()
                          : plan.integer_result ? abi::Value::of_i64(n)
                                                : abi::Value::of(static_cast<double>(n));
      continue;
    }
    if (n < plan.min_samples || n == 0) {
      out[plan.feature] = abi::Value::unknown();
      continue;
    }
    if (plan.op == abi::FeatureOp::kSum || plan.op == abi::FeatureOp::kMean) {
      if (here != from) {  // members that differ in exclude_current restart the pass
        from = here;
        seen = 0;
        sum = 0;
      }
      for (; seen < n; ++seen) sum += values[(header->next - 1 - from - seen) & mask];
      out[plan.feature] =
          abi::Value::of(plan.op == abi::FeatureOp::kSum ? sum : sum / static_cast<double>(n));
    } else {
      out[plan.feature] = slow_statistic(plan.op, plan.quantile, values, header->next, here, n);
    }
  }
}

abi::Value WindowRing::slow_statistic(abi::FeatureOp op, double quantile, const double* values,
                                      uint32_t next, uint32_t skip, uint32_t n) const {
  const uint32_t mask = capacity_ - 1;
  std::vector<double> window(n);
  for (uint32_t i = 0; i < n; ++i) window[i] = values[(next - 1 - skip - i) & mask];
  return statistic_of(op, quantile, window);
}

}  // namespace reflex::eval
