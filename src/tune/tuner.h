// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tune/bandit.h"
#include "tune/duel.h"
#include "tune/scoreboard.h"
#include "tune/search_space.h"
#include "tune/searcher.h"
#include "tune/trial.h"

namespace braid {

enum class KnownFrom : uint8_t {
  AlikeJob,  // another job, or what is good in most places
  SameJob,   // an earlier start
  ThisRun,   // it holds now, but the network has changed since
};

// Finds a fast setting while a job trains, by asking for some steps with this one, then with that
// one. A portfolio of searchers proposes, and a bandit gives the turns to those whose proposals
// pay, as in Lin et al., "AIACC-Training: Optimizing Distributed Deep Learning Training through
// Multi-Streamed and Concurrent Gradient Communications", ICDCS 2022 (auto-tuning).
//
// It ends with the defaults unless a duel has shown something better (duel.h). Pure: no clock, no
// thread; the same seed and the same seconds give the same questions. One thread.
class Tuner {
 public:
  struct Options {
    uint32_t trials = 24;          // the search measures trials · steps_per_trial steps,
    uint32_t steps_per_trial = 3;  // in turns of so many; their median counts
    uint32_t probe_steps = 1;      // a first look; what looks good gets a whole turn
    // The search ends when so many probes have shown nothing better than what it began with.
    uint32_t patience_probes = 16;
    uint32_t duel_rounds = 5;  // of four turns each; more where the search has left steps for them
    uint32_t duel_steps = 1;   // of each turn
    uint64_t seed = 1;
    std::vector<std::string> searchers = {};  // names; none: all of them
  };
  static constexpr uint32_t kTrialsMax = 1000;
  static constexpr uint32_t kPatienceMax = 10000;
  static constexpr uint32_t kStepsMax = 100;  // of one turn
  static constexpr uint32_t kRoundsMax = 100;

  // What an earlier tuning ended with.
  struct Known {
    Setting setting;
    double gain = 1;  // its speed over that of the defaults, then
    KnownFrom from = KnownFrom::AlikeJob;
  };

  struct Turn {
    Setting setting;
    uint32_t steps = 0;  // to measure; what the change itself costs is better left out
    TrialPurpose purpose = TrialPurpose::Baseline;
    std::string_view searcher;  // see Trial
    // A step that takes longer shows that the setting is hopeless: the turn may be reported after
    // it. Infinite where there is nothing to compare with.
    double hopeless_seconds = 0;
  };

  // `defaults`: the setting to hold against. Errors (InvalidArgument, NotFound for a searcher) name
  // the option.
  //
  // `known` for the same job: it holds at once (winner()), and three steps, known, defaults, known,
  // only look whether half of the gain is still there; if not, a duel decides, and when the
  // defaults win it the search begins as if nothing had been known. For another job: it is the
  // first probe, and the searchers begin around it. In this run: it holds meanwhile, and the search
  // begins with it as the incumbent; the defaults are the first probe.
  static Result<Tuner> create(SearchSpace space, const Setting& defaults, const Options& options,
                              std::optional<Known> known = std::nullopt);

  // Measured steps until it is done, at most: trials · steps_per_trial + duel_rounds · 4 ·
  // duel_steps; 3 steps and a second duel more where the same job is known.
  static uint64_t steps_max(const Options& options, bool same_job_is_known);

  // What to run now: the same answer until it is reported. Nothing: it is done.
  std::optional<Turn> next();

  // The steps of next()'s turn, in order: all of them, or fewer, where the job had no patience.
  // Refused (InvalidArgument), and nothing changes: another setting, no step or too many, seconds
  // that are not finite and positive.
  Status report(const Setting& setting, std::span<const double> seconds_of_steps);

  bool is_done() const { return phase_ == Phase::Done; }
  // The setting to use when nothing is to be measured: defaults, what is known of the same job or
  // holds in this run, or what won the duel.
  const Setting& winner() const { return winner_; }
  // The defaults' seconds / the winner's, as measured side by side in the end; 1: the defaults.
  double gain() const { return gain_; }
  // The best so far; only the duel makes it the winner.
  const Setting& incumbent() const { return board_.incumbent_setting(); }
  double noise() const { return board_.noise().of_step(); }  // of ln(a step's seconds)

  const Setting& defaults() const { return defaults_; }
  const SearchSpace& space() const { return space_; }
  const std::vector<Trial>& trials() const { return trials_; }

 private:
  enum class Phase : uint8_t { Check, CheckDuel, Search, Duel, Done };

  Tuner(SearchSpace space, const Setting& defaults, const Options& options,
        std::vector<std::unique_ptr<Searcher>> searchers);

  void begin_with(Known known);
  Status check_reported(const Setting& setting) const;
  void ask(const Setting& setting, uint32_t steps, TrialPurpose purpose,
           std::string_view searcher = "");
  void begin_turn();
  void finish_check_turn(double seconds);
  void begin_duel(Phase phase, const Setting& challenger, uint32_t rounds);
  void end_duel();
  void end_with_defaults();

  // tuner_search.cpp
  void begin_search();
  void begin_search_turn();
  void begin_baseline();
  void begin_repeat(size_t place);
  bool begin_probe();
  std::optional<size_t> challenger() const;
  void finish_search_turn(std::span<const double> seconds);
  double reward_of(const SettingScore& score) const;
  void end_search();
  uint32_t steps_left() const;  // of the search
  uint32_t duel_rounds() const;

  SearchSpace space_;
  Setting defaults_;
  Options options_;
  std::optional<Known> known_;
  Phase phase_ = Phase::Search;
  std::optional<Turn> turn_;  // asked for and not reported yet
  std::vector<Trial> trials_;

  std::vector<double> check_seconds_;  // known, defaults, known

  Scoreboard board_;
  RandomGenerator random_;
  std::vector<std::unique_ptr<Searcher>> searchers_;
  Bandit bandit_;
  Setting center_;                // where searchers begin
  std::optional<size_t> prober_;  // the searcher whose probe is being measured
  uint32_t search_steps_ = 0;
  uint32_t probes_ = 0;
  std::optional<Setting> first_probe_;

  std::optional<Duel> duel_;
  Setting challenger_;  // in the duel
  Setting winner_;
  double gain_ = 1;
};

}  // namespace braid
