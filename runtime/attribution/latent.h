// Latent: members of one group are not independent witnesses (README 5).
//
// The victims of one incident share its fate: whether "0.9 of the peers" turns out as all or as
// half of them is one draw, not a thousand. So the strength of a group edge is a hidden level
// theta, a Beta around the author's p that is worth kConcentration observations, put on a fixed
// grid; given theta the members are independent:
//   weight = log sum_q w_q(p) exp(sum_m log(1 - theta_q + theta_q ratio_m))
// One member: exactly log(1 - p + p ratio). A thousand: 0.95 against 0.90 differ by 1-2 nats, not
// by 54. The inner sums are plain sums over members, so "all minus one" costs nothing.
#pragma once

#include <array>
#include <cstddef>
#include <map>

namespace reflex::attribution {

inline constexpr size_t kLevels = 10;
using Levels = std::array<double, kLevels>;

/// theta, ascending.
const Levels& level_grid();
/// log(1 - theta + theta * ratio) at each level, multiples of 2^-32 nats.
Levels level_nats(double ratio);
/// log w_q(p): mean p exactly, for p within the grid (others are clamped to it).
Levels level_weights(double p);
/// log w_q of a benign storm: all shares from `0.2` on are equally likely.
const Levels& storm_weights();
/// log sum_q exp(log_weights_q + sums_q).
double mix(const Levels& log_weights, const Levels& sums);

inline Levels& operator+=(Levels& a, const Levels& b) {
  for (size_t i = 0; i < kLevels; ++i) a[i] += b[i];
  return a;
}
inline Levels& operator-=(Levels& a, const Levels& b) {
  for (size_t i = 0; i < kLevels; ++i) a[i] -= b[i];
  return a;
}
inline Levels operator*(double k, const Levels& a) {
  Levels out;
  for (size_t i = 0; i < kLevels; ++i) out[i] = k * a[i];
  return out;
}

/// level_weights(p), kept: the same few strengths are asked for again and again.
class LevelWeights {
 public:
  const Levels& at(double p) {
    const auto it = known_.find(p);
    return it != known_.end() ? it->second : known_.emplace(p, level_weights(p)).first->second;
  }

 private:
  std::map<double, Levels> known_;
};

}  // namespace reflex::attribution
