// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace braid {

// Defaults against a challenger, in rounds of defaults, challenger, challenger, defaults: each half
// of a round is a pair of neighbours, so a network that drifts slows both, and one that goes on
// getting slower favours each of them equally often.
//
// The challenger wins when the median of the pairs' ratios is better than 1 by more than the noise:
// twice the median's standard error, which comes from the pairs themselves or from what is known of
// the steps' noise, whichever is larger. After k of K rounds √(K/k) times as much is enough, as in
// O'Brien & Fleming, "A multiple testing procedure for clinical trials", Biometrics 35 (1979): many
// looks, and hardly more wins by chance. It is lost at half time by what is no better by then.
class Duel {
 public:
  static constexpr uint32_t kTurnsPerRound = 4;

  // So many rounds show a gain (more than 1) in half of all duels.
  static uint32_t rounds_to_show(double gain, double turn_noise);

  // `turn_noise`: standard error of the logarithm that one turn reports.
  Duel(uint32_t rounds, double turn_noise);

  bool is_done() const { return is_done_; }
  bool is_challengers_turn() const;
  void report(double seconds);  // median of the turn's steps
  bool challenger_wins() const { return challenger_wins_; }
  double gain() const;  // defaults' seconds / challenger's, median of the pairs; 1 without any

 private:
  void decide();

  uint32_t rounds_;
  double pair_noise_;
  double first_of_pair_ = 0;  // ln seconds
  uint32_t turns_ = 0;
  std::vector<double> log_ratios_;  // one of each pair
  bool is_done_ = false;
  bool challenger_wins_ = false;
};

}  // namespace braid
