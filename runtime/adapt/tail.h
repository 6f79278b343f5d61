// Tail: a quantile beyond what a sketch resolves, by peaks over threshold (methods.md 6.3(4)).
//
// The excesses over the 98 % level follow a generalised Pareto law, fitted by moments:
//   gamma = (1 - m^2/v) / 2, sigma = m (m^2/v + 1) / 2 of their mean m and variance v,
//   z_q = level + sigma/gamma ((q n / n_t)^-gamma - 1), or -sigma log(q n / n_t) as gamma -> 0,
// with q the wanted chance above. Pure; nothing when the tail has too few samples.
#pragma once

#include <optional>

#include "runtime/adapt/quantile_sketch.h"

namespace reflex::adapt {

/// The value that a share `above` of samples exceeds.
std::optional<double> tail_quantile(const QuantileSketch& sketch, double above);

struct QuantileEstimate {
  double value = 0;
  bool from_tail = false;
};
/// Quantile `q`: the sketch's where enough samples lie beyond it, else the tail's.
std::optional<QuantileEstimate> estimate_quantile(const QuantileSketch& sketch, double q);

}  // namespace reflex::adapt
