// DistinctWindow: exact set, then HyperLogLog; see distinct_window.h.
#include "runtime/eval/distinct_window.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace reflex::eval {
namespace {
uint64_t finish(uint64_t h) {  // splitmix64's finaliser: every bit depends on every bit
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
  return h ^ (h >> 31);
}
int64_t slot_of(int64_t ts_ns, int64_t window_ns) {
  if (window_ns <= 0) return 0;
  const int64_t width = std::max<int64_t>(window_ns / 4, 1);
  return ts_ns >= 0 ? ts_ns / width : -((-ts_ns + width - 1) / width);
}
/// 2^-rank: 4,096 of them for every count, so they are looked up.
constexpr std::array<double, 64> powers_of_half() {
  std::array<double, 64> out{};
  double power = 1;
  for (double& x : out) x = power, power /= 2;
  return out;
}
constexpr std::array<double, 64> kHalfPowers = powers_of_half();
}  // namespace

uint64_t hash_member(std::string_view name) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return finish(h);
}
uint64_t hash_member(int64_t value) {
  return finish(static_cast<uint64_t>(value) + 0x9e3779b97f4a7c15ull);
}

void DistinctWindow::add(uint64_t hash, int64_t ts_ns, int64_t window_ns) {
  if (sketches_ != nullptr) {
    add_sketch(hash, ts_ns, window_ns);
    return;
  }
  for (Member& m : members_) {
    if (m.hash == hash) {
      m.last_ns = std::max(m.last_ns, ts_ns);
      return;
    }
  }
  if (members_.size() >= kExactMax && window_ns > 0) {
    std::erase_if(members_, [&](const Member& m) { return m.last_ns <= ts_ns - window_ns; });
  }
  if (members_.size() < kExactMax) {
    members_.push_back({hash, ts_ns});
    return;
  }
  sketches_ = std::make_unique<std::array<Sketch, kSketches>>();
  for (const Member& m : members_) add_sketch(m.hash, m.last_ns, window_ns);
  members_.clear();
  add_sketch(hash, ts_ns, window_ns);
}

void DistinctWindow::add_sketch(uint64_t hash, int64_t ts_ns, int64_t window_ns) {
  const int64_t slot = slot_of(ts_ns, window_ns);
  Sketch& s = (*sketches_)[static_cast<size_t>(((slot % 5) + 5) % 5)];
  if (s.slot > slot) return;
  if (s.slot != slot) {
    s.slot = slot;
    s.registers.fill(0);
  }
  const size_t index = hash & (kRegisters - 1);
  const auto rank = static_cast<uint8_t>(std::countl_zero((hash >> 12) << 12 | 0xfff) + 1);
  s.registers[index] = std::max(s.registers[index], rank);
}

DistinctWindow DistinctWindow::clone() const {
  DistinctWindow copy;
  copy.members_ = members_;
  if (sketches_) copy.sketches_ = std::make_unique<std::array<Sketch, kSketches>>(*sketches_);
  return copy;
}

void DistinctWindow::save(StateWriter& out, int64_t window_ns) const {
  out.i64(window_ns);
  out.u64(members_.size());
  for (const Member& m : members_) {
    out.u64(m.hash);
    out.i64(m.last_ns);
  }
  out.flag(sketches_ != nullptr);
  if (sketches_ == nullptr) return;
  for (const Sketch& s : *sketches_) {
    out.i64(s.slot);
    if (s.slot == INT64_MIN) continue;
    out.raw({reinterpret_cast<const char*>(s.registers.data()), kRegisters});
  }
}

void DistinctWindow::load(StateReader& in, int64_t window_ns) {
  const int64_t old_window_ns = in.i64();
  members_.resize(in.bounded(kExactMax));
  for (Member& m : members_) {
    m.hash = in.u64();
    m.last_ns = in.i64();
  }
  if (!in.flag() || in.failed()) return;
  sketches_ = std::make_unique<std::array<Sketch, kSketches>>();
  for (size_t i = 0; i < kSketches; ++i) {
    int64_t slot = in.i64();
    if (in.failed() || slot == INT64_MIN) continue;
    const std::string_view registers = in.raw(kRegisters);
    if (in.failed()) return;
    if (old_window_ns != window_ns) {
      // The end of its time decides: nothing leaves too early.
      const int64_t width = std::max<int64_t>(old_window_ns / 4, 1);
      int64_t end_ns = 0;
      if (slot > INT64_MAX - 1 || __builtin_mul_overflow(slot + 1, width, &end_ns)) {
        return in.fail();
      }
      slot = old_window_ns <= 0 ? 0 : slot_of(end_ns - 1, window_ns);
    }
    Sketch& s = (*sketches_)[static_cast<size_t>(((slot % 5) + 5) % 5)];
    if (s.slot > slot) continue;
    if (s.slot != slot) s.registers.fill(0);
    s.slot = slot;
    for (size_t r = 0; r < kRegisters; ++r) {
      // Why 53: 52 bits of a hash give the rank.
      if (static_cast<uint8_t>(registers[r]) > 53) return in.fail();
      s.registers[r] = std::max(s.registers[r], static_cast<uint8_t>(registers[r]));
    }
  }
}

double DistinctWindow::count(int64_t now_ns, int64_t window_ns) const {
  if (sketches_ == nullptr) {
    if (window_ns <= 0) return static_cast<double>(members_.size());
    return static_cast<double>(
        std::count_if(members_.begin(), members_.end(),
                      [&](const Member& m) { return m.last_ns > now_ns - window_ns; }));
  }
  const int64_t now_slot = slot_of(now_ns, window_ns);
  std::array<uint8_t, kRegisters> merged{};
  for (const Sketch& s : *sketches_) {
    if (s.slot == INT64_MIN || s.slot < now_slot - 4 || s.slot > now_slot) continue;
    for (size_t i = 0; i < kRegisters; ++i) merged[i] = std::max(merged[i], s.registers[i]);
  }
  constexpr double kM = kRegisters;
  double sum = 0;
  double zeros = 0;
  for (uint8_t r : merged) {
    sum += kHalfPowers[r];
    zeros += r == 0 ? 1 : 0;
  }
  const double alpha = 0.7213 / (1 + 1.079 / kM);
  const double estimate = alpha * kM * kM / sum;
  if (estimate <= 2.5 * kM && zeros > 0) return std::round(kM * std::log(kM / zeros));
  return std::round(estimate);
}

}  // namespace reflex::eval
