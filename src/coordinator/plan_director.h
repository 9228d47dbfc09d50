// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "base/log.h"
#include "coordinator/job_tuning.h"
#include "coordinator/plan_measurements.h"
#include "loop/timer.h"
#include "loop/work_thread.h"
#include "messages/plan_messages.h"
#include "planner/fit_cost.h"
#include "planner/planner.h"
#include "planning/codec_guard.h"

namespace braid {

struct PlanningOptions {
  const Planner* planner = nullptr;  // nullptr: every set keeps the plan it begins with
  uint32_t streams = 4;              // groups that the engines have in flight at once
  // A plan replaces another when it is predicted to take so much less than that one is predicted to
  // (from the same measurements), and than that one was measured to.
  double min_gain = 0.03;
  uint32_t answer_timeout_ms = 5000;  // for a proposal; then it is dropped
  TuningOptions tuning = {};          // off
  GuardOptions guard = {};            // off
  // Where plans are made and trials are chosen, which takes tens of milliseconds; it outlives the
  // jobs. None: on the loop.
  WorkThread* worker = nullptr;
};

struct PlanDecision;

// The coordinator's part of planning one job: merges what the nodes have measured, fits the cost,
// plans, and has all nodes change at one step. Control loop only.
//
// It has the settings tuned, too, once the first plan has settled: a trial is a plan with the same
// groups and other settings, which begins with the next step. No plan is made meanwhile, and what
// was measured with other settings is forgotten. Sets are tuned one after the other, for they share
// the network. What holds for the whole job the first of them decides, the leader; the others keep
// it. Where the leader's all-reduces show another network for some time, all are tuned again.
//
// It guards the job's codecs as well, whether plans are made or not: what loses too much goes
// plain, by a plan that changes nothing else. That plan comes before all others, and again until it
// holds.
//
// Plans are made on another thread, one at a time, from copies. What holds when the answer comes
// must still be what it was made from, or it is dropped; the next round of reports asks again.
//
// Changing costs nothing, but plans that chase noise are worse than one that stays. So a new plan
// must be worth it, by prediction and against what was measured; and each one holds for twice as
// many reports as the one before it, unless iterations have become longer or shorter than they
// were: then the network, or the model, is another, and what was measured before says nothing.
class PlanDirector {
 public:
  // If iterations are now at least 25 % longer or shorter than just after the plan was made, the
  // plan no longer fits.
  static constexpr double kIterationChangeMin = 0.25;
  // So much slower or faster all-reduces than when the set was last looked at are those of another
  // network. More than for iterations, because plans differ in the sizes that they measure.
  static constexpr double kNetworkChangeMin = 0.5;
  static constexpr uint32_t kRoundsMax = 64;
  // The plan changes so far ahead of the latest step that a node has reported: time for a proposal
  // to go around, at the speed that steps have now.
  static constexpr double kNoticeSeconds = 0.3;
  static constexpr uint64_t kNoticeStepsMin = 2;
  static constexpr uint64_t kNoticeStepsMax = 4096;
  // Tuning begins when so many rounds of reports have come under a planned plan, or under the first
  // one.
  static constexpr uint32_t kPlannedRoundsMin = 1;
  static constexpr uint32_t kFirstPlanRoundsMin = 2;
  // A change of settings comes with the next step. Where steps follow each other too fast for that,
  // the notice grows.
  static constexpr uint64_t kTuningNoticeStepsMax = 16;
  static constexpr uint32_t kTuningRefusalsMax = 32;  // in a row: then tuning ends
  // So many rounds of other sets' reports without a step of the one that is tuned end its tuning:
  // planning rests meanwhile.
  static constexpr uint32_t kRoundsOfOthersMax = 16;
  // Another network is tuned for when it was seen in so many rounds in a row, and so many steps
  // after the last tuning; the steps double each time. Trials cost steps.
  static constexpr uint32_t kOtherNetworkRoundsMin = 3;
  static constexpr uint64_t kStepsBetweenTuningsMin = 1024;
  static constexpr size_t kSetsMax = 1024;
  // Readings of many groups come together, and metrics are looked at much more seldom.
  static constexpr uint32_t kBoardDelayMs = 100;

  using Send = std::function<void(NodeId to, ControlBuffer message)>;

  PlanDirector(Loop& loop, JobLabel job, uint64_t job_key, std::vector<NodeId> nodes,
               PlanningOptions options, Send send);
  ~PlanDirector();
  PlanDirector(const PlanDirector&) = delete;
  PlanDirector& operator=(const PlanDirector&) = delete;

  // Which job's director a message is for; nothing: it is about something else.
  static std::optional<uint64_t> job_of(const proto::ControlMessage& message);
  // One that job_of() says is for this job, from one of its nodes.
  void on_control_message(NodeId from, const proto::ControlMessage& message);

  void warn(const Status& status) const;
  void on_report(NodeId from, const proto::PlanReport& message);
  void on_answer(NodeId from, const proto::PlanAnswer& answer);
  void on_set_registered(NodeId from, const proto::SetRegistered& message);
  void on_set_unregistered(NodeId from, const proto::SetUnregistered& message);
  void on_step_report(NodeId from, const proto::StepReport& message);
  void on_codec_sample(NodeId from, const proto::CodecSample& message);

  // What the nodes have last said of the job's codecs.
  const CodecGuard& guard() const { return guard_; }
  // As JSON, a list of all sets that are, were or will be tuned, by their ids.
  std::string tuning_json() const;

 private:
  struct Set {
    explicit Set(Loop& loop) : timer(loop) {}
    std::map<NodeId, PlanReport> reports;       // since the last decision
    std::vector<CostMeasurement> latest;        // that came with them
    std::vector<std::vector<uint64_t>> groups;  // of the plan that holds; empty: the first one
    uint32_t plan = 0;
    uint32_t last_number = 0;
    uint32_t rounds = 0;                      // of reports since the plan began
    uint32_t rounds_to_hold = 0;              // so many before another one may replace it
    uint64_t iteration_ns = 0;                // in the plan's first round; 0: not measured
    double slowness = 0;                      // of all-reduces, against reference_; 0: not measured
    double slowness_tuned_for = 0;            // as soon after tuning as it was measured
    uint32_t rounds_elsewhere = 0;            // in a row, on another network than tuned for
    uint64_t notice_steps = kNoticeStepsMin;  // grows when a proposal came too late
    std::optional<PlanProposal> proposal;
    std::set<NodeId> accepted;
    bool is_another_network = false;  // and no plan was made since
    std::optional<SetSummary> summary;
    std::set<NodeId> registered;  // the nodes that have it
    // The nodes that have it no more. One is enough: no step follows, and no plan is proposed.
    std::set<NodeId> unregistered;
    uint64_t latest_step = 0;  // that a node has said to have begun or ended
    std::unique_ptr<JobTuning> tuning;
    uint32_t tunings = 0;                      // that have begun
    std::optional<TransferSettings> settings;  // that the nodes have agreed on; none: configured
    uint64_t tuned_step = 0;                   // in which the last tuning ended
    uint64_t tuning_notice_steps = 1;
    uint32_t tuning_refusals = 0;     // in a row
    uint64_t reports_of_others = 0;   // since the last step that was measured
    uint32_t settings_plan = 0;       // with which the settings that hold began, or the groups
    uint64_t plan_from_step = 0;      // from which the latest plan holds
    std::vector<PlainGroup> leaving;  // whose codec is to end
    std::set<uint64_t> plain;         // tensors whose codec has ended
    uint64_t plain_notice_steps = kNoticeStepsMin;
    Timer timer;
  };

  // The reports of all nodes, under one plan.
  struct Round {
    std::vector<PlanReport> reports;
    std::vector<CostMeasurement> measured;  // that came with them
    bool is_another_network = false;
    uint32_t plan = 0;
    uint64_t era = 0;
  };

  Set* find_or_make(uint64_t id);
  void end_planning(uint64_t id, Set& set);
  // plan_director_tuning.cpp
  void make_tuning(uint64_t id, Set& set);
  bool is_tuning() const;
  void begin_tuning_if_settled(Set& set);
  void begin_known_tuning();
  void begin_tuning(Set& set);
  void end_tuning(Set& set);
  void watch_tuning(uint64_t id, Set& set, uint64_t step);
  void watch_network(Set& set, std::span<const CostMeasurement> measured);
  void tune_again_on_another_network(Set& set);
  void change_settings(uint64_t id, Set& set);
  void on_settings_concluded(uint64_t id, Set& set, bool holds, uint64_t from_step);
  void forget_measurements();

  // plan_director_guard.cpp
  bool propose_plain(uint64_t id, Set& set);
  void show_readings();
  void on_plain_concluded(Set& set, const PlanProposal& proposal, bool holds);

  bool has_changed(Set& set);
  void decide(uint64_t id, Set& set, Round round);
  void on_decision(uint64_t id, const Round& round, Result<PlanDecision>& decision);
  void take_decision(uint64_t id, Set& set, const Round& round, PlanDecision& decision);
  void finish_round(Set& set, const Round& round);
  void propose(Set& set, PlanProposal proposal);
  void conclude(uint64_t id, Set& set, bool holds);

  Loop& loop_;
  const JobLabel job_;
  const uint64_t job_key_;
  const std::vector<NodeId> nodes_;
  const PlanningOptions options_;
  const Send send_;
  // The network is the same for all sets, and a node's report has the all-reduces of all.
  MeasurementJoin join_;
  PlanMeasurements measurements_;
  std::optional<FittedCost> cost_;       // of the last decision
  std::optional<FittedCost> reference_;  // of the first one
  std::map<uint64_t, std::unique_ptr<Set>> sets_;
  Set* tuned_ = nullptr;   // the set that is tuned, or was last
  Set* leader_ = nullptr;  // the one whose tuning has decided what holds for the whole job
  uint64_t steps_between_tunings_ = kStepsBetweenTuningsMin;
  uint32_t streams_;  // that plans are made for
  bool is_deciding_ = false;
  // The number of the measurements: it grows when they were forgotten, or come from another
  // network.
  uint64_t era_ = 0;
  CodecGuard guard_;
  Timer board_timer_;  // active while the board has not all readings
  Lifetime lifetime_;  // of what is asked of the plan thread
};

}  // namespace braid
