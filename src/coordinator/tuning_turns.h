// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "coordinator/job_tuning.h"
#include "coordinator/network_model.h"
#include "coordinator/set_plans.h"

namespace braid {

// Tunes the sets of a job. A trial is a plan with the same groups and other settings, which begins
// with the next step. Sets are tuned one after the other, for they share the network. The first of
// them, the leader, decides what holds for the whole job, and the others keep it. If the leader's
// all-reduces show another network for some time, all are tuned again. Control loop only; it lives
// as long as the job.
class TuningTurns {
 public:
  // A change of settings comes with the next step. Where steps follow each other too fast for that,
  // the notice grows.
  static constexpr uint64_t kNoticeStepsMost = 16;
  static constexpr uint32_t kRefusalsMax = 32;  // in a row: then tuning ends
  // So many rounds of other sets' reports without a step of the one that is tuned end its tuning:
  // planning rests meanwhile.
  static constexpr uint32_t kRoundsOfOthersMax = 16;
  // Another network is tuned for when it was seen in so many rounds in a row, and so many steps
  // after the last tuning; the steps double each time. Trials cost steps.
  static constexpr uint32_t kOtherNetworkRoundsMin = 3;
  static constexpr uint64_t kStepsBetweenTuningsMin = 1024;

  // `on_change`: next() has something new for this set. `worker` as for JobTuning.
  TuningTurns(const PlannedJob& job, const TuningOptions& options, uint32_t streams,
              WorkThread* worker, NetworkModel& network,
              std::function<void(uint64_t set)> on_change);
  TuningTurns(const TuningTurns&) = delete;
  TuningTurns& operator=(const TuningTurns&) = delete;

  // A node has registered a set. `plans` outlives forget().
  void on_registered(NodeId from, const SetSummary& summary, const SetPlans& plans);
  // A node has unregistered the set. True: it was just tuned.
  bool forget(uint64_t set);

  bool is_tuning() const;
  // A report while a set is tuned: reports come also where steps are not measured.
  void on_progress(uint64_t set, uint64_t step);
  void on_step(NodeId from, const StepReport& report);
  // Looks whether the leader is on another network than it was tuned for. 0: not known.
  void watch_network(uint64_t set, double slowness);
  // A round of reports has come for the set, and nothing is proposed for it. `has_settled`: its
  // plan has held for some rounds, so a tuning that waits may begin.
  void on_round(uint64_t set, bool has_settled);
  // A tuning is over and the measurements are forgotten.
  void begin_next();

  // What is to be proposed for a set; nothing: its settings stay.
  std::optional<PlanProposal> next(uint64_t set) const;
  // The end of such a proposal. True: the tuning is over, and what was measured before and during
  // it says nothing about what comes.
  bool on_end(const PlanProposal& proposal, bool holds);

  uint32_t streams() const { return streams_; }  // that plans are made for
  // A list of all sets that are, were or will be tuned, by their ids.
  std::string to_json() const;

 private:
  struct Set {
    const SetPlans* plans = nullptr;
    SetSummary summary;
    std::set<NodeId> registered;  // the nodes that have it
    std::unique_ptr<JobTuning> tuning;
    uint32_t tunings = 0;                      // that have begun
    std::optional<TransferSettings> settings;  // that the nodes have agreed on; none: configured
    uint64_t tuned_step = 0;                   // in which the last tuning ended
    uint64_t notice_steps = 1;
    uint32_t refusals = 0;          // in a row
    double slowness_at_start = 0;   // as soon after tuning as it was measured
    uint32_t rounds_elsewhere = 0;  // in a row, on another network than tuned for
  };

  Set* find(uint64_t id);
  void make(Set& set);
  void start(Set& set);
  void begin_known();
  void tune_again_on_another_network();

  const PlannedJob& job_;
  const TuningOptions options_;
  WorkThread* const worker_;
  NetworkModel& network_;
  const std::function<void(uint64_t set)> on_change_;
  std::map<uint64_t, Set> sets_;
  Set* tuned_ = nullptr;   // the set that is tuned, or was last
  Set* leader_ = nullptr;  // the one whose tuning has decided what holds for the whole job
  uint64_t steps_between_ = kStepsBetweenTuningsMin;
  uint64_t reports_of_others_ = 0;  // since the last step that was measured
  uint32_t streams_;
};

}  // namespace braid
