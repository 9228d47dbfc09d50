// SPDX-License-Identifier: Apache-2.0
//   phase       begins with                 goes on to
//   Check       the same job is known       Done: half of its gain is there; else CheckDuel
//   CheckDuel   the check fails             Done: known wins; else Search
//   Search      nothing (such) is known     Duel: trials used up or nothing left to try, and the
//                                           incumbent is not the defaults; else Done
//   Duel        the search ends             Done
#include "tune/tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/robust_line.h"

namespace braid {
namespace {

constexpr uint32_t kCheckTurns = 3;  // of one step
constexpr double kCheckGainPart = 0.5;

Status check_count(std::string_view option, uint32_t value, uint32_t max) {
  if (value >= 1 && value <= max) return Status::ok();
  return make_status(StatusCode::InvalidArgument, "{}: {}; right are 1 to {}", option, value, max);
}

Status check_options(const Tuner::Options& options) {
  BRAID_RETURN_IF_ERROR(check_count("trials", options.trials, Tuner::kTrialsMax));
  BRAID_RETURN_IF_ERROR(check_count("steps_per_trial", options.steps_per_trial, Tuner::kStepsMax));
  BRAID_RETURN_IF_ERROR(check_count("probe_steps", options.probe_steps, options.steps_per_trial));
  BRAID_RETURN_IF_ERROR(
      check_count("patience_probes", options.patience_probes, Tuner::kPatienceMax));
  BRAID_RETURN_IF_ERROR(check_count("duel_rounds", options.duel_rounds, Tuner::kRoundsMax));
  return check_count("duel_steps", options.duel_steps, Tuner::kStepsMax);
}

Status check_seconds(std::span<const double> seconds, uint32_t steps) {
  if (seconds.empty() || seconds.size() > steps) {
    return make_status(StatusCode::InvalidArgument, "{} steps reported; right are 1 to {}",
                       seconds.size(), steps);
  }
  for (const double value : seconds) {
    if (std::isfinite(value) && value > 0) continue;
    return make_status(StatusCode::InvalidArgument,
                       "a step of {} seconds; right are finite, positive ones", value);
  }
  return Status::ok();
}

}  // namespace

Tuner::Tuner(SearchSpace space, const Setting& defaults, const Options& options,
             std::vector<std::unique_ptr<Searcher>> searchers)
    : space_(std::move(space)),
      defaults_(defaults),
      options_(options),
      board_(defaults),
      random_(options.seed),
      searchers_(std::move(searchers)),
      bandit_(searchers_.size()),
      center_(defaults),
      winner_(defaults) {}

Result<Tuner> Tuner::create(SearchSpace space, const Setting& defaults, const Options& options,
                            std::optional<Known> known) {
  BRAID_RETURN_IF_ERROR(check_options(options));
  if (!space.allows(defaults)) {
    return make_status(StatusCode::InvalidArgument, "the space does not allow the defaults");
  }
  if (known && !space.allows(known->setting)) {
    return make_status(StatusCode::InvalidArgument, "the space does not allow the known setting");
  }
  if (known && !(std::isfinite(known->gain) && known->gain > 0)) {
    return make_status(StatusCode::InvalidArgument, "a known gain of {}", known->gain);
  }
  std::vector<std::unique_ptr<Searcher>> searchers;
  const auto add = [&](std::string_view name) {
    auto searcher = make_searcher(name);
    if (!searcher) return searcher.status();
    searchers.push_back(std::move(searcher).value());
    return Status::ok();
  };
  for (const std::string& name : options.searchers) BRAID_RETURN_IF_ERROR(add(name));
  if (options.searchers.empty()) {
    for (const std::string_view name : searcher_names()) BRAID_RETURN_IF_ERROR(add(name));
  }
  Tuner tuner(std::move(space), defaults, options, std::move(searchers));
  if (known) tuner.begin_with(std::move(*known));
  return tuner;
}

void Tuner::begin_with(Known known) {
  known_ = std::move(known);
  switch (known_->from) {
    case KnownFrom::SameJob:
      winner_ = known_->setting;
      gain_ = known_->gain;
      // The search found nothing better than the defaults, and would again.
      phase_ = winner_ == defaults_ ? Phase::Done : Phase::Check;
      return;
    case KnownFrom::AlikeJob:
      center_ = known_->setting;
      if (center_ != defaults_) first_probe_ = center_;
      return;
    case KnownFrom::ThisRun:
      winner_ = known_->setting;
      center_ = known_->setting;
      board_ = Scoreboard(known_->setting);
      if (center_ != defaults_) first_probe_ = defaults_;
      return;
  }
}

uint64_t Tuner::steps_max(const Options& options, bool same_job_is_known) {
  const uint64_t duel = uint64_t{options.duel_rounds} * Duel::kTurnsPerRound * options.duel_steps;
  const uint64_t search = uint64_t{options.trials} * options.steps_per_trial;
  return search + duel + (same_job_is_known ? kCheckTurns + duel : 0);
}

void Tuner::ask(const Setting& setting, uint32_t steps, TrialPurpose purpose,
                std::string_view searcher) {
  turn_ = Turn{setting, steps, purpose, searcher, std::numeric_limits<double>::infinity()};
}

std::optional<Tuner::Turn> Tuner::next() {
  while (!turn_ && phase_ != Phase::Done) begin_turn();
  return turn_;
}

void Tuner::begin_turn() {
  switch (phase_) {
    case Phase::Check:
      ask(check_seconds_.size() == 1 ? defaults_ : known_->setting, 1, TrialPurpose::Check,
          "knowledge");
      break;
    case Phase::Search:
      begin_search_turn();
      break;
    case Phase::CheckDuel:
    case Phase::Duel:
      ask(duel_->is_challengers_turn() ? challenger_ : defaults_, options_.duel_steps,
          TrialPurpose::Duel);
      break;
    case Phase::Done:
      break;
  }
}

Status Tuner::check_reported(const Setting& setting) const {
  if (!turn_) return make_status(StatusCode::InvalidArgument, "no turn was asked for");
  if (setting == turn_->setting) return Status::ok();
  return make_status(StatusCode::InvalidArgument, "another setting than the one asked for");
}

Status Tuner::report(const Setting& setting, std::span<const double> seconds_of_steps) {
  BRAID_RETURN_IF_ERROR(check_reported(setting));
  BRAID_RETURN_IF_ERROR(check_seconds(seconds_of_steps, turn_->steps));
  const double median = median_of({seconds_of_steps.begin(), seconds_of_steps.end()});
  trials_.push_back({setting, turn_->purpose, turn_->searcher, median,
                     static_cast<uint32_t>(seconds_of_steps.size())});
  switch (phase_) {
    case Phase::Check:
      finish_check_turn(median);
      break;
    case Phase::Search:
      finish_search_turn(seconds_of_steps);
      break;
    case Phase::CheckDuel:
    case Phase::Duel:
      duel_->report(median);
      if (duel_->is_done()) end_duel();
      break;
    case Phase::Done:
      BRAID_ASSERT(false, "nothing is asked for when all is done");
  }
  turn_.reset();
  return Status::ok();
}

void Tuner::finish_check_turn(double seconds) {
  check_seconds_.push_back(seconds);
  if (check_seconds_.size() < kCheckTurns) return;
  const double log_gain =
      std::log(check_seconds_[1]) - (std::log(check_seconds_[0]) + std::log(check_seconds_[2])) / 2;
  if (log_gain > 0 && log_gain >= kCheckGainPart * std::log(known_->gain)) {
    phase_ = Phase::Done;
  } else {
    begin_duel(Phase::CheckDuel, known_->setting, options_.duel_rounds);
  }
}

void Tuner::begin_duel(Phase phase, const Setting& challenger, uint32_t rounds) {
  phase_ = phase;
  challenger_ = challenger;
  duel_.emplace(rounds, board_.noise().of_median(options_.duel_steps));
}

void Tuner::end_duel() {
  if (duel_->challenger_wins()) {
    winner_ = challenger_;
    gain_ = duel_->gain();
    phase_ = Phase::Done;
  } else if (phase_ == Phase::CheckDuel) {
    begin_search();
  } else {
    end_with_defaults();
  }
}

void Tuner::end_with_defaults() {
  winner_ = defaults_;
  gain_ = 1;
  phase_ = Phase::Done;
}

}  // namespace braid
