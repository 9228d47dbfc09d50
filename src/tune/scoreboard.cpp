// SPDX-License-Identifier: Apache-2.0
#include "tune/scoreboard.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "planner/robust_line.h"

namespace braid {
namespace {

constexpr size_t kAnchorReachTurns = 8;     // farther anchors say nothing of a turn
constexpr double kSameLevelDeviations = 2;  // anchors that differ by more are of different times

size_t distance_of(size_t a, size_t b) { return a > b ? a - b : b - a; }

}  // namespace

Scoreboard::Scoreboard(const Setting& defaults) : scores_{{defaults, 0, 0, 0}}, is_settled_{true} {}

std::optional<size_t> Scoreboard::place_of(const Setting& setting) const {
  for (size_t i = 0; i < scores_.size(); ++i) {
    if (scores_[i].setting == setting) return i;
  }
  return std::nullopt;
}

void Scoreboard::add(const Setting& setting, bool is_anchor, std::span<const double> seconds) {
  std::vector<double> logs;
  for (const double value : seconds) logs.push_back(std::log(value));
  noise_.add(logs);
  auto place = place_of(setting);
  if (!place) {
    place = scores_.size();
    scores_.push_back({setting, 0, 0, 0});
    is_settled_.push_back(false);
  }
  const auto steps = static_cast<uint32_t>(logs.size());
  turns_.push_back({*place, median_of(std::move(logs)), steps});
  ++scores_[*place].turns;
  if (is_anchor) {
    BRAID_ASSERT(*place == incumbent_, "an anchor measures the incumbent");
    add_anchor(turns_.size() - 1);
  }
  update();
}

void Scoreboard::promote() {
  incumbent_ = turns_.back().place;
  is_settled_[incumbent_] = true;
  add_anchor(turns_.size() - 1);
  update();
}

void Scoreboard::add_anchor(size_t turn) {
  anchors_.push_back({turn, turns_[turn].log_seconds - scores_[turns_[turn].place].score});
}

uint32_t Scoreboard::turns_since_anchor() const {
  const size_t next = anchors_.empty() ? 0 : anchors_.back().turn + 1;
  return static_cast<uint32_t>(turns_.size() - next);
}

double Scoreboard::incumbent_seconds() const {
  return std::exp(level_at(turns_.size()) + scores_[incumbent_].score);
}

// The mean of the anchors near it that tell of the same level as the nearest one.
double Scoreboard::level_at(size_t turn) const {
  BRAID_ASSERT(!anchors_.empty(), "nothing to compare with");
  const auto nearer = [&](const Anchor& a, const Anchor& b) {
    return distance_of(a.turn, turn) < distance_of(b.turn, turn);
  };
  const Anchor& nearest = *std::min_element(anchors_.begin(), anchors_.end(), nearer);
  const double deviation = noise_.of_median(turns_[nearest.turn].steps) * std::sqrt(2.0);
  double sum = 0;
  double weights = 0;
  for (const Anchor& anchor : anchors_) {
    const size_t distance = distance_of(anchor.turn, turn);
    const bool is_same = std::abs(anchor.level - nearest.level) <= kSameLevelDeviations * deviation;
    if (anchor.turn != nearest.turn && (distance > kAnchorReachTurns || !is_same)) continue;
    const double weight = 1.0 / static_cast<double>(1 + distance);
    sum += weight * anchor.level;
    weights += weight;
  }
  return sum / weights;
}

void Scoreboard::update() {
  if (anchors_.empty()) return;
  std::vector<double> sums(scores_.size(), 0);
  std::vector<double> weights(scores_.size(), 0);
  for (size_t i = 0; i < turns_.size(); ++i) {
    const Turn& turn = turns_[i];
    sums[turn.place] += turn.steps * (turn.log_seconds - level_at(i));
    weights[turn.place] += turn.steps;
  }
  for (size_t place = 0; place < scores_.size(); ++place) {
    SettingScore& score = scores_[place];
    if (weights[place] == 0 || score.turns == 0) continue;
    if (!is_settled_[place]) score.score = sums[place] / weights[place];
    const auto steps = static_cast<uint32_t>(weights[place] / score.turns);
    // The level that it is compared with is a mean of two anchors or so.
    score.noise = noise_.of_median(std::max(1u, steps)) * std::sqrt(1.0 / score.turns + 0.5);
  }
}

}  // namespace braid
