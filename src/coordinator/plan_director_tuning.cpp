// SPDX-License-Identifier: Apache-2.0
// The director's part of tuning: when it begins, and how the nodes change their settings.
#include <algorithm>

#include "base/log.h"
#include "coordinator/plan_director.h"
#include "planning/plan_book.h"

namespace braid {

void PlanDirector::on_set_registered(NodeId from, const proto::SetRegistered& message) {
  if (!options_.tuning.is_on || nodes_.size() < 2) return;
  const auto parsed = parse_set_registered(message);
  if (!parsed) return warn(parsed.status());
  const SetSummary& summary = *parsed;
  Set* set = find_or_make(summary.set);
  if (set == nullptr) return;
  if (!set->summary) set->summary = summary;
  // Nodes that have registered different tensors will be told by their first operation.
  if (*set->summary != summary) return;
  set->registered.insert(from);
  const bool is_used = set->unregistered.empty();
  if (set->registered.size() < nodes_.size() || set->tuning != nullptr || !is_used) return;
  make_tuning(summary.set, *set);
  begin_known_tuning();
}

// One that waits is made anew when another set's tuning has decided what holds for the whole job,
// and before it begins.
void PlanDirector::make_tuning(uint64_t id, Set& set) {
  TuningTask task;
  task.set = *set.summary;
  task.number = set.tunings + 1;
  if (leader_ != nullptr && leader_ != &set) task.job_settings = leader_->settings;
  if (set.tunings > 0) task.holding = set.settings;
  const TransferSettings& now = set.settings ? *set.settings : options_.tuning.defaults;
  const auto nodes = static_cast<uint32_t>(nodes_.size());
  const auto cost = fit_hop_cost(measurements_.all(), nodes,
                                 {now.direct_bytes, now.two_hops_bytes, now.halving_bytes});
  if (cost) task.sizes = algorithm_sizes(nodes, *cost);
  auto tuning = JobTuning::create(job_, nodes_.size(), options_.tuning, task, options_.worker,
                                  [this, id, &set] { change_settings(id, set); });
  if (tuning) {
    set.tuning = std::move(tuning).value();
    return;
  }
  set.tuning.reset();
  BRAID_LOG_INFO(LogFields{.job = job_}, "job '{}': set {:016x} is not tuned: {}", job_.name, id,
                 tuning.status().message());
}

bool PlanDirector::is_tuning() const {
  return tuned_ != nullptr && tuned_->tuning != nullptr && !tuned_->tuning->is_waiting() &&
         !tuned_->tuning->is_over();
}

void PlanDirector::begin_tuning_if_settled(Set& set) {
  if (is_tuning()) return;
  tune_again_on_another_network(set);
  if (set.tuning == nullptr || !set.tuning->is_waiting()) return;
  const bool is_planned = set.plan != 0 || options_.planner == nullptr;
  if (set.rounds < (is_planned ? kPlannedRoundsMin : kFirstPlanRoundsMin)) return;
  make_tuning(set.summary->set, set);  // with what was measured since
  if (set.tuning != nullptr) begin_tuning(set);
}

// What an earlier job has found need not wait for a plan.
void PlanDirector::begin_known_tuning() {
  for (auto& [id, set] : sets_) {
    if (is_tuning()) return;
    const JobTuning* tuning = set->tuning.get();
    if (tuning != nullptr && tuning->is_waiting() && tuning->is_known()) begin_tuning(*set);
  }
}

// A plan that is just being made is dropped: planning rests.
void PlanDirector::begin_tuning(Set& set) {
  ++era_;
  tuned_ = &set;
  ++set.tunings;
  set.reports_of_others = 0;
  set.tuning->begin();
}

void PlanDirector::end_tuning(Set& set) {
  forget_measurements();
  set.tuned_step = set.latest_step;
  if (leader_ == nullptr && !set.tuning->is_given_up()) leader_ = &set;
  for (auto& [id, other] : sets_) {
    if (other->tuning != nullptr && other->tuning->is_waiting()) make_tuning(id, *other);
  }
  begin_known_tuning();
}

// Reports come also where steps are not measured.
void PlanDirector::watch_tuning(uint64_t id, Set& set, uint64_t step) {
  set.latest_step = std::max(set.latest_step, step);
  if (&set == tuned_) {
    if (set.tuning->on_progress(step)) change_settings(id, set);
    return;
  }
  if (++tuned_->reports_of_others < kRoundsOfOthersMax * nodes_.size()) return;
  const auto has_ended =
      tuned_->tuning->stop(fmt::format("the set had no step while others had about {}",
                                       kRoundsOfOthersMax * PlannedSet::kStepsPerReport));
  if (has_ended) change_settings(tuned_->summary->set, *tuned_);
}

// The leader's sizes and plans change little once it is tuned, so its all-reduces tell. What takes
// part of a round only, such as another job that begins, is in its median or not.
void PlanDirector::watch_network(Set& set, std::span<const CostMeasurement> measured) {
  if (&set != leader_ || !reference_) return;
  const double now = slowness(measured, *reference_);
  if (now == 0) return;
  if (set.slowness_tuned_for == 0) set.slowness_tuned_for = now;
  const bool is_another = differ(set.slowness_tuned_for, now, kNetworkChangeMin);
  set.rounds_elsewhere = is_another ? set.rounds_elsewhere + 1 : 0;
}

void PlanDirector::tune_again_on_another_network(Set& set) {
  if (set.rounds_elsewhere < kOtherNetworkRoundsMin || &set != leader_) return;
  if (set.latest_step < set.tuned_step + steps_between_tunings_) return;
  BRAID_LOG_INFO(LogFields{.job = job_},
                 "job '{}': the network has changed since the tuning that ended with step {}",
                 job_.name, set.tuned_step);
  steps_between_tunings_ *= 2;
  for (auto& [id, other] : sets_) {
    if (other->tuning != nullptr && other->tuning->is_over()) make_tuning(id, *other);
  }
}

// Where a plan is just being agreed on, this waits for its end.
void PlanDirector::change_settings(uint64_t id, Set& set) {
  if (!set.unregistered.empty() || propose_plain(id, set)) return;
  const auto change = set.tuning->change();
  if (!change || set.proposal) return;
  PlanProposal proposal;
  proposal.set = id;
  proposal.number = ++set.last_number;
  proposal.from_step = set.latest_step + set.tuning_notice_steps;
  proposal.settings = change->settings;
  proposal.flows_open = change->flows_open;
  proposal.reports_steps = change->reports_steps;
  propose(set, std::move(proposal));
}

void PlanDirector::on_settings_concluded(uint64_t id, Set& set, bool holds, uint64_t from_step) {
  if (holds) {
    set.tuning_refusals = 0;
    set.settings = set.tuning->change()->settings;
    streams_ = set.settings->streams;
    set.tuning->on_changed(from_step);
    if (set.tuning->is_over()) end_tuning(set);
    return;
  }
  // Too late for a node: the next one comes with the steps that have begun meanwhile in mind.
  set.tuning_notice_steps = std::min(set.tuning_notice_steps + 1, kTuningNoticeStepsMax);
  if (++set.tuning_refusals < kTuningRefusalsMax) return change_settings(id, set);
  set.tuning->give_up(
      fmt::format("the nodes have not agreed on settings for {} times", set.tuning_refusals));
  end_tuning(set);
}

void PlanDirector::on_step_report(NodeId from, const proto::StepReport& message) {
  const auto parsed = parse_step_report(message);
  if (!parsed) return warn(parsed.status());
  const StepReport& report = *parsed;
  const auto position = sets_.find(report.set);
  if (position == sets_.end()) return;
  Set& set = *position->second;
  // A codec's end is a plan as well, but not one with other settings.
  const bool is_of_these_settings = report.plan >= set.settings_plan && report.plan <= set.plan;
  if (&set != tuned_ || set.tuning == nullptr || !is_of_these_settings) return;
  set.latest_step = std::max(set.latest_step, report.step);
  set.reports_of_others = 0;
  set.tuning->on_step(from, report.step, report.nanoseconds);
}

// With other settings reductions take other times: planning begins anew, of all sets.
void PlanDirector::forget_measurements() {
  ++era_;
  join_.clear();
  measurements_.clear();
  cost_.reset();
  reference_.reset();
  for (auto& [id, set] : sets_) {
    set->reports.clear();
    set->latest.clear();
    set->rounds = 0;
    set->rounds_to_hold = 0;
    set->iteration_ns = 0;
    set->slowness = 0;
    set->slowness_tuned_for = 0;
    set->rounds_elsewhere = 0;
    set->is_another_network = false;
  }
}

std::string PlanDirector::tuning_json() const {
  std::string list;
  for (const auto& [id, set] : sets_) {
    if (set->tuning != nullptr) list += (list.empty() ? "" : ",") + set->tuning->to_json();
  }
  return "[" + list + "]";
}

}  // namespace braid
