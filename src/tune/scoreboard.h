// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tune/noise.h"
#include "tune/searcher.h"

namespace braid {

// Makes trials comparable though the network's speed drifts meanwhile. Some turns are *anchors*:
// they measure the incumbent, whose score is settled, so they say how slow the network itself is at
// that time (its *level*). Every other turn is compared with the anchors next to it, earlier and
// later ones, so a score may change when the next anchor is known.
class Scoreboard {
 public:
  explicit Scoreboard(const Setting& defaults);

  // One turn; seconds are of its steps, one or more, positive.
  void add(const Setting& setting, bool is_anchor, std::span<const double> seconds);
  // Makes the setting of the last turn the incumbent, and that turn an anchor.
  void promote();

  // Each setting once, in the order of their first turns; the defaults first.
  const std::vector<SettingScore>& scores() const { return scores_; }
  size_t incumbent() const { return incumbent_; }  // its place in scores()
  const Setting& incumbent_setting() const { return scores_[incumbent_].setting; }
  std::optional<size_t> place_of(const Setting& setting) const;
  bool has_anchor() const { return !anchors_.empty(); }
  uint32_t turns_since_anchor() const;
  double incumbent_seconds() const;  // now; there is an anchor
  const Noise& noise() const { return noise_; }

 private:
  struct Turn {
    size_t place = 0;
    double log_seconds = 0;  // median
    uint32_t steps = 0;
  };
  struct Anchor {
    size_t turn = 0;
    double level = 0;  // ln of the seconds that the defaults would have taken then
  };
  void add_anchor(size_t turn);
  double level_at(size_t turn) const;
  void update();

  std::vector<Turn> turns_;
  std::vector<Anchor> anchors_;  // by turn
  std::vector<SettingScore> scores_;
  std::vector<bool> is_settled_;  // the score does not change any more: was an incumbent
  size_t incumbent_ = 0;
  Noise noise_;
};

}  // namespace braid
