// SPDX-License-Identifier: Apache-2.0
#include "tune/noise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/assert.h"
#include "planner/robust_line.h"

namespace braid {
namespace {

constexpr double kNoisePrior = 0.05;  // what is believed of a cluster of which nothing is known,
constexpr size_t kPriorWeight = 2;    // as strongly as if it had been seen so often
constexpr double kNoiseMin = 0.002;   // no clock and no scheduler is quieter
constexpr double kNormalDeviationPerMedian = 1.4826;

}  // namespace

void Noise::add(const std::vector<double>& log_seconds) {
  for (size_t i = 1; i < log_seconds.size(); ++i) {
    differences_.push_back(std::abs(log_seconds[i] - log_seconds[i - 1]));
  }
}

double Noise::of_step() const {
  std::vector<double> all = differences_;
  all.insert(all.end(), kPriorWeight,
             kNoisePrior * std::numbers::sqrt2 / kNormalDeviationPerMedian);
  const double deviation = kNormalDeviationPerMedian * median_of(all) / std::numbers::sqrt2;
  return std::max(deviation, kNoiseMin);
}

double Noise::of_median(uint32_t steps) const {
  BRAID_ASSERT(steps > 0, "the median of nothing");
  // A median of one or two is a mean; of many its variance is π/2 times as large; three have 1.35.
  const double inefficiency = steps <= 2 ? 1 : steps == 3 ? 1.35 : std::numbers::pi / 2;
  return of_step() * std::sqrt(inefficiency / steps);
}

}  // namespace braid
