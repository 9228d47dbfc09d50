// SPDX-License-Identifier: Apache-2.0
// The director's part of tuning: when it begins, and how the nodes change their settings.
#include <algorithm>

#include "base/log.h"
#include "planning/plan_director.h"

namespace braid {

void PlanDirector::on_set_registered(NodeId from, const proto::SetRegistered& message) {
  if (!options_.tuning.is_on || nodes_.size() < 2) return;
  const SetSummary summary = parse_set_registered(message);
  Set* set = find_or_make(summary.set);
  if (set == nullptr) return;
  if (!set->summary) set->summary = summary;
  // Nodes that have registered different tensors will be told by their first operation.
  if (*set->summary != summary) return;
  set->registered.insert(from);
  if (set->registered.size() < nodes_.size() || tuned_ != nullptr) return;
  make_tuning(summary.set, *set);
  if (set->tuning == nullptr || !set->tuning->is_known()) return;
  begin_tuning(*set);
}

void PlanDirector::make_tuning(uint64_t id, Set& set) {
  auto tuning = JobTuning::create(job_name_, nodes_.size(), options_.tuning, *set.summary,
                                  options_.worker, [this, id, &set] { change_settings(id, set); });
  if (tuning) {
    set.tuning = std::move(tuning).value();
    return;
  }
  BRAID_LOG_INFO("job '{}': set {:016x} is not tuned: {}", job_name_, id,
                 tuning.status().message());
}

void PlanDirector::begin_tuning_if_settled(Set& set) {
  if (tuned_ != nullptr || set.tuning == nullptr) return;
  const bool is_planned = set.plan != 0 || options_.planner == nullptr;
  if (set.rounds < (is_planned ? kPlannedRoundsMin : kFirstPlanRoundsMin)) return;
  begin_tuning(set);
}

// A plan that is just being made is dropped: planning rests.
void PlanDirector::begin_tuning(Set& set) {
  ++era_;
  tuned_ = &set;
  set.tuning->begin();
}

// Where a plan is just being agreed on, this waits for its end.
void PlanDirector::change_settings(uint64_t id, Set& set) {
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
    streams_ = set.tuning->change()->settings.streams;
    set.tuning->on_changed(from_step);
    if (set.tuning->is_over()) forget_measurements(set);
    return;
  }
  // Too late for a node: the next one comes with the steps that have begun meanwhile in mind.
  set.tuning_notice_steps = std::min(set.tuning_notice_steps + 1, kTuningNoticeStepsMax);
  if (++set.tuning_refusals < kTuningRefusalsMax) return change_settings(id, set);
  set.tuning->give_up(
      fmt::format("the nodes have not agreed on settings for {} times", set.tuning_refusals));
  forget_measurements(set);
}

void PlanDirector::on_step_report(NodeId from, const proto::StepReport& message) {
  const StepReport report = parse_step_report(message);
  const auto position = sets_.find(report.set);
  if (position == sets_.end()) return;
  Set& set = *position->second;
  if (&set != tuned_ || report.plan != set.plan) return;
  set.latest_step = std::max(set.latest_step, report.step);
  set.tuning->on_step(from, report.step, report.nanoseconds);
}

// With other settings reductions take other times: planning begins anew.
void PlanDirector::forget_measurements(Set& set) {
  ++era_;
  join_.clear();
  measurements_.clear();
  cost_.reset();
  reference_.reset();
  set.rounds = 0;
  set.rounds_to_hold = 0;
  set.iteration_ns = 0;
  set.slowness = 0;
  set.is_another_network = false;
}

std::string PlanDirector::tuning_json() const {
  if (tuned_ != nullptr) return tuned_->tuning->to_json();
  for (const auto& [id, set] : sets_) {
    if (set->tuning != nullptr) return set->tuning->to_json();
  }
  return "null";
}

}  // namespace braid
