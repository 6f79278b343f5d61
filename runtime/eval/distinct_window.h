// DistinctWindow: how many different members were seen in the last D (or ever, D = 0).
//
// Exact up to 64 live members (each with the time it was seen last); beyond that HyperLogLog with
// 4096 registers (1.6 % standard error) in five sketches of D/4 each, so that a member leaves at
// most D/4 late. Members are hashed by name by the caller: symbol ids depend on thread timing.
// Source: Flajolet et al., "HyperLogLog", AofA 2007 (alpha_m, linear counting below 2.5 m).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/base/state_stream.h"

namespace reflex::eval {

uint64_t hash_member(std::string_view name);
uint64_t hash_member(int64_t value);

class DistinctWindow {
 public:
  void add(uint64_t hash, int64_t ts_ns, int64_t window_ns);
  [[nodiscard]] double count(int64_t now_ns, int64_t window_ns) const;
  [[nodiscard]] bool approximate() const { return sketches_ != nullptr; }
  [[nodiscard]] DistinctWindow clone() const;
  [[nodiscard]] bool empty() const { return members_.empty() && sketches_ == nullptr; }
  /// `window_ns`: the window that it was fed with.
  void save(StateWriter& out, int64_t window_ns) const;
  /// Another window than that of save(): members of a sketch leave later by at most its width.
  void load(StateReader& in, int64_t window_ns);

 private:
  static constexpr size_t kExactMax = 64;
  static constexpr size_t kRegisters = 4096;
  static constexpr size_t kSketches = 5;
  struct Member {
    uint64_t hash;
    int64_t last_ns;
  };
  struct Sketch {
    int64_t slot = INT64_MIN;  // ts / (D/4)
    std::array<uint8_t, kRegisters> registers{};
  };
  void add_sketch(uint64_t hash, int64_t ts_ns, int64_t window_ns);

  std::vector<Member> members_;
  std::unique_ptr<std::array<Sketch, kSketches>> sketches_;
};

}  // namespace reflex::eval
