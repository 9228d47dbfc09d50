// SPDX-License-Identifier: Apache-2.0
#include "tune/duel.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/assert.h"
#include "planner/robust_line.h"

namespace braid {
namespace {

constexpr double kWinErrors = 2;    // standard errors of the median, in the last round
constexpr double kClearErrors = 3;  // of a single pair
constexpr size_t kSpreadPairsMin = 4;
constexpr size_t kLookPairsMin = 6;      // of fewer a single outlier moves the median
constexpr double kMedianError = 1.2533;  // √(π/2): of a median, next to a mean
constexpr double kSpreadPerMedian = 1.4826;
constexpr double kPairsPerRound = 2;
constexpr double kRoundsToShowMax = 1e6;

double spread_about(const std::vector<double>& values, double middle) {
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - middle));
  return kSpreadPerMedian * median_of(std::move(distances));
}

}  // namespace

Duel::Duel(uint32_t rounds, double turn_noise)
    : rounds_(rounds), pair_noise_(turn_noise * std::numbers::sqrt2) {}

bool Duel::is_challengers_turn() const {
  const uint32_t turn = turns_ % kTurnsPerRound;
  return turn == 1 || turn == 2;
}

void Duel::report(double seconds) {
  BRAID_ASSERT(!is_done_, "the duel is over");
  const double value = std::log(seconds);
  if (turns_ % 2 == 0) {
    first_of_pair_ = value;
  } else {
    log_ratios_.push_back(is_challengers_turn() ? first_of_pair_ - value : value - first_of_pair_);
  }
  ++turns_;
  if (turns_ % kTurnsPerRound == 0) decide();
}

double Duel::gain() const { return log_ratios_.empty() ? 1 : std::exp(median_of(log_ratios_)); }

void Duel::decide() {
  const double middle = median_of(log_ratios_);
  const auto [low, high] = std::minmax_element(log_ratios_.begin(), log_ratios_.end());
  double noise = pair_noise_;
  if (log_ratios_.size() >= kSpreadPairsMin) {
    noise = std::max(noise, spread_about(log_ratios_, middle));
  }
  const double error = kMedianError * noise / std::sqrt(static_cast<double>(log_ratios_.size()));
  const uint32_t round = turns_ / kTurnsPerRound;
  const bool is_last = turns_ == rounds_ * kTurnsPerRound;
  const bool has_looked_enough = is_last || log_ratios_.size() >= kLookPairsMin;
  // What is looked at after each round must be clearer in the first ones.
  const double errors = kWinErrors * std::sqrt(static_cast<double>(rounds_) / round);
  challenger_wins_ =
      (has_looked_enough && middle > errors * error) || *low > kClearErrors * pair_noise_;
  const bool is_hopeless = has_looked_enough && middle <= 0 && 2 * round >= rounds_;
  is_done_ = challenger_wins_ || is_hopeless || is_last || *high < -pair_noise_;
}

uint32_t Duel::rounds_to_show(double gain, double turn_noise) {
  const double errors = kWinErrors * kMedianError * turn_noise * std::numbers::sqrt2;
  const double pairs = std::pow(errors / std::log(gain), 2);
  return static_cast<uint32_t>(std::min(std::ceil(pairs / kPairsPerRound), kRoundsToShowMax));
}

}  // namespace braid
