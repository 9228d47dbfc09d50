// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/lifetime.h"
#include "coordinator/codec_ends.h"
#include "coordinator/network_model.h"
#include "coordinator/plan_rounds.h"
#include "coordinator/set_plans.h"
#include "coordinator/set_traffic.h"
#include "coordinator/tuning_turns.h"
#include "loop/work_thread.h"
#include "planner/planner.h"

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
// plans, and has all nodes change at one step (SetPlans). A set has one proposal at a time: the end
// of a codec (CodecEnds) comes before other settings (TuningTurns), and those before other groups.
// While a set is tuned no plan is made, and what was measured with other settings is forgotten.
// Control loop only; it lives as long as the job.
//
// Plans are made on another thread, one at a time, from copies. What holds when the answer comes
// must still be what it was made from, or it is dropped; the next round of reports asks again.
//
// Changing costs nothing, but plans that chase noise are worse than one that stays. So a new plan
// must be worth it, by prediction and against what was measured; and it holds for some rounds
// (PlanRounds).
class PlanDirector {
 public:
  // The plan changes so far ahead of the latest step that a node has reported: time for a proposal
  // to go around, at the speed that steps have now.
  static constexpr double kNoticeSeconds = 0.3;
  // Tuning begins when so many rounds of reports have come under a planned plan, or under the first
  // one.
  static constexpr uint32_t kPlannedRoundsMin = 1;
  static constexpr uint32_t kFirstPlanRoundsMin = 2;
  static constexpr size_t kSetsMax = 1024;

  PlanDirector(PlannedJob job, PlanningOptions options);
  PlanDirector(const PlanDirector&) = delete;
  PlanDirector& operator=(const PlanDirector&) = delete;

  // Which job's director a message is for; nothing: it is about something else.
  static std::optional<uint64_t> job_of(const proto::ControlMessage& message);
  // One that job_of() says is for this job, from one of its nodes.
  void on_control_message(NodeId from, const proto::ControlMessage& message);

  // What the nodes have last said of the job's codecs.
  const CodecGuard& guard() const { return codecs_.guard(); }
  // As JSON: see TuningTurns.
  std::string tuning_json() const { return tunings_.to_json(); }

 private:
  struct Set {
    Set(const PlannedJob& job, SetPlans::OnEnd on_end) : plans(job, std::move(on_end)) {}
    SetPlans plans;
    PlanRounds rounds;
    std::vector<std::vector<uint64_t>> groups;    // of the plan that holds; empty: the first one
    std::shared_ptr<const SetMeasured> measured;  // of the latest decision; nullptr: there was none
    bool is_another_network = false;              // and no plan was made since
    uint64_t notice_steps = kNoticeStepsMin;      // grows when a proposal came too late
    // The nodes that have it no more. One is enough: no step follows, and no plan is proposed.
    std::set<NodeId> unregistered;
  };
  // What a decision is made from.
  struct Question {
    PlanRound round;
    bool is_another_network = false;
    uint32_t plan = 0;
    uint64_t era = 0;
  };

  void on_report(NodeId from, PlanReport report);
  void on_set_registered(NodeId from, const SetSummary& summary);
  void on_set_unregistered(NodeId from, uint64_t id);
  void on_step_report(NodeId from, const StepReport& report);
  void on_codec_sample(NodeId from, const CodecSample& sample);
  template <typename Message>
  const Message* taken(const Result<Message>& parsed) const;

  Set* find(uint64_t id);
  Set* find_or_make(uint64_t id);
  std::vector<SetTraffic> traffic_beside(uint64_t id, const PlanRound& round) const;
  void look_anew_beside(uint64_t id);
  void decide(uint64_t id, Set& set, PlanRound round);
  void on_decision(uint64_t id, const Question& question, Result<PlanDecision>& decision);
  void take_decision(uint64_t id, Set& set, const Question& question, PlanDecision& decision);
  void finish_round(uint64_t id, Set& set, const PlanRound& round);
  void propose_next(uint64_t id);
  void on_end(uint64_t id, const PlanProposal& proposal, SetPlans::End end);
  void plan_anew();

  const PlannedJob job_;
  const PlanningOptions options_;
  NetworkModel network_;
  CodecEnds codecs_;
  TuningTurns tunings_;
  std::map<uint64_t, std::unique_ptr<Set>> sets_;
  bool is_deciding_ = false;
  Lifetime lifetime_;  // of what is asked of the plan thread
};

}  // namespace braid
