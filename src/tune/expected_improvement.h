// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <numbers>

namespace braid {

// How much less than `best` a normally distributed value is, on average, more counting as nothing.
// Jones, Schonlau & Welch 1998, equation 15.
inline double expected_improvement(double mean, double deviation, double best) {
  const double gain = best - mean;
  if (deviation <= 0) return gain > 0 ? gain : 0;
  const double z = gain / deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double probability = std::erfc(-z / std::numbers::sqrt2) / 2;
  return gain * probability + deviation * density;
}

}  // namespace braid
