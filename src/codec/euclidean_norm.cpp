// SPDX-License-Identifier: Apache-2.0
#include "codec/euclidean_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace braid {
namespace {

constexpr uint64_t kPlaces = 16;

}  // namespace

float euclidean_norm(const float* values, uint64_t count) {
  double sums[kPlaces] = {};
  uint64_t i = 0;
  for (; count - i >= kPlaces; i += kPlaces) {
    for (uint64_t place = 0; place < kPlaces; ++place) {
      const double value = values[i + place];
      sums[place] += value * value;
    }
  }
  for (uint64_t place = 0; i + place < count; ++place) {
    const double value = values[i + place];
    sums[place] += value * value;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::min(std::sqrt(total), kMost));
}

}  // namespace braid
