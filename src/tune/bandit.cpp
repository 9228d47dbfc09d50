// SPDX-License-Identifier: Apache-2.0
#include "tune/bandit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.h"

namespace braid {

std::optional<size_t> Bandit::choose() const {
  std::optional<size_t> chosen;
  double highest = 0;
  for (size_t i = 0; i < arms_.size(); ++i) {
    if (arms_[i].is_retired) continue;
    const double value = bound(arms_[i]);
    if (!chosen || value > highest) {
      chosen = i;
      highest = value;
    }
  }
  return chosen;
}

void Bandit::reward(size_t arm, double reward) {
  BRAID_ASSERT(reward >= 0 && reward <= 1, "rewards are in [0, 1]");
  ++turns_;
  ++arms_[arm].turns;
  arms_[arm].sum += reward;
  arms_[arm].squares += reward * reward;
}

double Bandit::bound(const Arm& arm) const {
  if (arm.turns == 0) return std::numeric_limits<double>::infinity();
  constexpr double kVarianceMax = 0.25;  // of anything in [0, 1]
  const double n = arm.turns;
  const double mean = arm.sum / n;
  const double log_turns = std::log(static_cast<double>(turns_));
  const double variance = arm.squares / n - mean * mean + std::sqrt(2 * log_turns / n);
  return mean + std::sqrt(log_turns / n * std::min(kVarianceMax, variance));
}

}  // namespace braid
