// SPDX-License-Identifier: Apache-2.0
// The tuner's search: which turn comes next, and what its seconds change.
#include <algorithm>
#include <cmath>
#include <utility>

#include "tune/tuner.h"

namespace braid {
namespace {

constexpr uint32_t kTurnsPerBaseline = 10;       // of each so many turns one measures the incumbent
constexpr uint32_t kRepeatAfterBaselineMax = 2;  // turns after which a repeat needs a new one first
constexpr double kPromisingErrors = 1;           // better by so many standard errors of its score
constexpr uint32_t kFinalTurns = 3;  // of whole steps; what is only as good gets a second look too
// A lead of so many standard errors of a turn of the duel needs but so many rounds to show.
constexpr double kClearLeadErrors = 8;
constexpr uint32_t kClearLeadRounds = 2;
constexpr double kGainToShow = 1.05;
constexpr double kHopelessRatio = 3;
constexpr double kFullRewardGain = 0.1;  // 10 % better than the incumbent: more is not more reward

}  // namespace

std::string_view purpose_name(TrialPurpose purpose) {
  switch (purpose) {
    case TrialPurpose::Baseline:
      return "baseline";
    case TrialPurpose::Probe:
      return "probe";
    case TrialPurpose::Repeat:
      return "repeat";
    case TrialPurpose::Duel:
      return "duel";
    case TrialPurpose::Check:
      return "check";
  }
  return "";
}

void Tuner::begin_search() {
  winner_ = defaults_;
  gain_ = 1;
  phase_ = Phase::Search;
}

// Where the lead is clear, the steps of the duel's last rounds are the search's.
uint32_t Tuner::steps_left() const {
  const uint32_t round = Duel::kTurnsPerRound * options_.duel_steps;
  const double lead = -board_.scores()[board_.incumbent()].score;
  const double noise = board_.noise().of_median(options_.duel_steps);
  uint32_t steps = options_.trials * options_.steps_per_trial;
  if (lead > kClearLeadErrors * noise) {
    steps += (options_.duel_rounds - std::min(options_.duel_rounds, kClearLeadRounds)) * round;
  }
  return steps - std::min(steps, search_steps_);
}

// As many as show a gain that is worth having, with the steps that are left.
uint32_t Tuner::duel_rounds() const {
  const uint32_t round = Duel::kTurnsPerRound * options_.duel_steps;
  const uint32_t trial_steps = options_.trials * options_.steps_per_trial;
  const uint32_t left = (trial_steps + options_.duel_rounds * round - search_steps_) / round;
  const uint32_t enough =
      Duel::rounds_to_show(kGainToShow, board_.noise().of_median(options_.duel_steps));
  return std::min(std::max(enough, options_.duel_rounds), left);
}

void Tuner::begin_search_turn() {
  if (steps_left() == 0) return end_search();
  if (!board_.has_anchor()) return begin_baseline();
  if (const auto promising = challenger()) {
    const bool is_fresh = board_.turns_since_anchor() <= kRepeatAfterBaselineMax;
    if (is_fresh || steps_left() <= options_.steps_per_trial) return begin_repeat(*promising);
    return begin_baseline();
  }
  // Where what is configured is good, trials are steps for nothing.
  const bool is_in_vain = board_.incumbent() == 0 && probes_ >= options_.patience_probes;
  if (is_in_vain) return end_search();
  // A probe that nothing is left to repeat would be for nothing.
  if (steps_left() <= options_.probe_steps) return end_search();
  if (board_.turns_since_anchor() + 1 >= kTurnsPerBaseline) return begin_baseline();
  if (!begin_probe()) end_search();
}

void Tuner::begin_baseline() {
  ask(board_.incumbent_setting(), std::min(steps_left(), options_.steps_per_trial),
      TrialPurpose::Baseline);
}

void Tuner::begin_repeat(size_t place) {
  ask(board_.scores()[place].setting, std::min(steps_left(), options_.steps_per_trial),
      TrialPurpose::Repeat);
}

// The best setting that looks better than the incumbent and was not settled by a repeat.
std::optional<size_t> Tuner::challenger() const {
  const auto& scores = board_.scores();
  const double mark = scores[board_.incumbent()].score;
  const double errors =
      steps_left() <= kFinalTurns * options_.steps_per_trial ? -kPromisingErrors : kPromisingErrors;
  std::optional<size_t> best;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (i == board_.incumbent() || scores[i].turns != 1) continue;
    if (scores[i].score + errors * scores[i].noise >= mark) continue;
    if (!best || scores[i].score < scores[*best].score) best = i;
  }
  return best;
}

bool Tuner::begin_probe() {
  if (const auto first = std::exchange(first_probe_, std::nullopt))
    ask(*first, options_.probe_steps, TrialPurpose::Probe, "knowledge");
  while (!turn_) {
    prober_ = bandit_.choose();
    if (!prober_) return false;
    Searcher& searcher = *searchers_[*prober_];
    const SearchView view{space_, board_.scores(), board_.incumbent(), center_,
                          steps_left() / options_.probe_steps};
    const auto setting = searcher.propose(view, random_);
    if (!setting) {
      bandit_.retire(*prober_);
      continue;
    }
    ask(*setting, options_.probe_steps, TrialPurpose::Probe, searcher.name());
  }
  turn_->hopeless_seconds = kHopelessRatio * board_.incumbent_seconds();
  return true;
}

void Tuner::finish_search_turn(std::span<const double> seconds) {
  search_steps_ += static_cast<uint32_t>(seconds.size());
  const bool is_anchor = turn_->setting == board_.incumbent_setting();
  board_.add(turn_->setting, is_anchor, seconds);
  const SettingScore& score = board_.scores()[*board_.place_of(turn_->setting)];
  const double lead = board_.scores()[board_.incumbent()].score - score.score;
  if (prober_) bandit_.reward(*prober_, reward_of(score));
  prober_.reset();
  if (turn_->purpose == TrialPurpose::Probe) ++probes_;
  if (!is_anchor && score.turns > 1 && lead > kPromisingErrors * score.noise) board_.promote();
}

// Half for its rank among all that was tried, half for what it gains over the incumbent.
double Tuner::reward_of(const SettingScore& score) const {
  const auto& scores = board_.scores();
  const auto slower = std::count_if(scores.begin(), scores.end(), [&](const SettingScore& other) {
    return other.turns == 0 || other.score > score.score;
  });
  const double others = std::max(1.0, static_cast<double>(scores.size()) - 1);
  const double lead = scores[board_.incumbent()].score - score.score;
  const double gain = std::clamp(lead / kFullRewardGain, 0.0, 1.0);
  return 0.5 * std::min(1.0, static_cast<double>(slower) / others) + 0.5 * gain;
}

void Tuner::end_search() {
  if (board_.incumbent_setting() == defaults_) {
    end_with_defaults();
  } else {
    begin_duel(Phase::Duel, board_.incumbent_setting(), duel_rounds());
  }
}

}  // namespace braid
