// WindowRing: the last N samples of one input per entity, shared by all statistics over it.
//
// State layout per entity: Header, then `capacity` (a power of two) doubles.
// Sums are cumulative from the newest sample: the sum over the last 4 is a prefix of the one over
// the last 8, so any number of windows costs one pass of the largest.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/abi/evaluator.h"
#include "runtime/abi/plan.h"
#include "runtime/base/state_stream.h"
#include "runtime/eval/state_arena.h"

namespace reflex::eval {

class WindowRing {
 public:
  struct Member {
    abi::FeatureId feature = 0;
    const abi::FeaturePlan* plan = nullptr;
  };
  /// Adds a statistic; only before reserve().
  void add(const Member& member);
  /// `stays`: see StateArena::reserve.
  void reserve(StateArena& arena, abi::EntityKindId entity_kind, abi::KindId home, bool stays);

  void push(char* state, double value, uint64_t order) const {
    auto* header = reinterpret_cast<Header*>(state);
    auto* values = reinterpret_cast<double*>(header + 1);
    values[header->next] = value;
    header->next = (header->next + 1) & (capacity_ - 1);
    if (header->count < capacity_) ++header->count;
    header->order = order;
  }
  /// Writes out[feature] of each member. `skip_order`: the newest sample is left out when it came
  /// with this order (members that exclude the current event).
  void read(const char* state, uint64_t skip_order, abi::Value* out) const;
  /// How many samples a statistic can see: one more than N when it may leave out the current one.
  [[nodiscard]] static uint32_t samples_of(const abi::FeaturePlan& plan) {
    return plan.last_n + (plan.exclude_current ? 1u : 0u);
  }
  /// The newest `most` samples.
  void save(const char* state, uint32_t most, StateWriter& out) const;
  static void read_saved(StateReader& in, uint64_t& order, std::vector<double>& oldest_first);
  [[nodiscard]] static bool has_samples(const char* state) {
    return reinterpret_cast<const Header*>(state)->count != 0;
  }
  [[nodiscard]] Place place() const { return place_; }
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }

 private:
  struct Header {
    uint32_t count = 0;  // at most capacity
    uint32_t next = 0;
    uint64_t order = 0;  // of the newest sample
  };
  abi::Value slow_statistic(abi::FeatureOp op, double quantile, const double* values, uint32_t next,
                            uint32_t skip, uint32_t n) const;

  struct Reading {  // what read() needs of a member, side by side
    abi::FeatureId feature = 0;
    uint32_t last_n = 0;
    uint32_t min_samples = 1;
    abi::FeatureOp op = abi::FeatureOp::kSum;
    bool exclude_current = false;
    bool integer_result = false;
    double quantile = 0.5;
  };
  std::vector<Member> members_;  // ascending last_n
  std::vector<Reading> readings_;
  Place place_;
  uint32_t capacity_ = 0;
};

}  // namespace reflex::eval
