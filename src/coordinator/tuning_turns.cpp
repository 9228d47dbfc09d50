// SPDX-License-Identifier: Apache-2.0
#include "coordinator/tuning_turns.h"

#include <algorithm>
#include <utility>

#include "coordinator/plan_rounds.h"
#include "planning/planned_set.h"

namespace braid {

TuningTurns::TuningTurns(const PlannedJob& job, const TuningOptions& options, uint32_t streams,
                         WorkThread* worker, NetworkModel& network,
                         std::function<void(uint64_t set)> on_change)
    : job_(job),
      options_(options),
      worker_(worker),
      network_(network),
      on_change_(std::move(on_change)),
      streams_(streams) {}

TuningTurns::Set* TuningTurns::find(uint64_t id) {
  const auto position = sets_.find(id);
  return position == sets_.end() ? nullptr : &position->second;
}

void TuningTurns::on_registered(NodeId from, const SetSummary& summary, const SetPlans& plans) {
  const auto [position, is_new] = sets_.try_emplace(summary.set);
  Set& set = position->second;
  if (is_new) {
    set.plans = &plans;
    set.summary = summary;
  }
  // Nodes that have registered different tensors will be told by their first operation.
  if (set.summary != summary) return;
  set.registered.insert(from);
  if (set.registered.size() < job_.nodes.size() || set.tuning != nullptr) return;
  make(set);
  begin_known();
}

bool TuningTurns::forget(uint64_t id) {
  Set* set = find(id);
  if (set == nullptr) return false;
  const bool was_tuned = tuned_ == set && is_tuning();
  if (tuned_ == set) tuned_ = nullptr;
  if (leader_ == set) leader_ = nullptr;
  sets_.erase(id);
  return was_tuned;
}

// One that waits is made anew when another set's tuning has decided what holds for the whole job,
// and before it begins.
void TuningTurns::make(Set& set) {
  TuningTask task;
  task.set = set.summary;
  task.number = set.tunings + 1;
  if (leader_ != nullptr && leader_ != &set) task.job_settings = leader_->settings;
  if (set.tunings > 0) task.holding = set.settings;
  const TransferSettings& now = set.settings ? *set.settings : options_.defaults;
  const auto nodes = static_cast<uint32_t>(job_.nodes.size());
  const auto cost = fit_hop_cost(network_.measurements(), nodes,
                                 {now.direct_bytes, now.two_hops_bytes, now.halving_bytes});
  if (cost) task.sizes = algorithm_sizes(nodes, *cost);
  const uint64_t id = set.summary.set;
  auto tuning =
      JobTuning::create(job_.label, nodes, options_, task, worker_, [this, id] { on_change_(id); });
  if (tuning) {
    set.tuning = std::move(tuning).value();
    return;
  }
  set.tuning.reset();
  BRAID_LOG_INFO(LogFields{.job = job_.label}, "job '{}': set {:016x} is not tuned: {}",
                 job_.label.name, id, tuning.status().message());
}

bool TuningTurns::is_tuning() const {
  return tuned_ != nullptr && tuned_->tuning != nullptr && !tuned_->tuning->is_waiting() &&
         !tuned_->tuning->is_over();
}

void TuningTurns::on_round(uint64_t id, bool has_settled) {
  Set* set = find(id);
  if (set == nullptr || is_tuning()) return;
  if (set == leader_) tune_again_on_another_network();
  if (!has_settled || set->tuning == nullptr || !set->tuning->is_waiting()) return;
  make(*set);  // with what was measured since
  if (set->tuning != nullptr) start(*set);
}

void TuningTurns::begin_next() {
  for (auto& [id, set] : sets_) {
    set.slowness_at_start = 0;
    set.rounds_elsewhere = 0;
    if (set.tuning != nullptr && set.tuning->is_waiting()) make(set);
  }
  begin_known();
}

// What an earlier job has found need not wait for a plan.
void TuningTurns::begin_known() {
  for (auto& [id, set] : sets_) {
    if (is_tuning()) return;
    if (set.tuning != nullptr && set.tuning->is_waiting() && set.tuning->is_known()) start(set);
  }
}

// A plan that is just being made is dropped: planning rests.
void TuningTurns::start(Set& set) {
  network_.begin_era();
  tuned_ = &set;
  ++set.tunings;
  reports_of_others_ = 0;
  set.tuning->begin();
}

void TuningTurns::on_progress(uint64_t id, uint64_t step) {
  Set& tuned = *tuned_;
  bool has_ended = false;
  if (id == tuned.summary.set) {
    has_ended = tuned.tuning->on_progress(step);
  } else if (++reports_of_others_ >= kRoundsOfOthersMax * job_.nodes.size()) {
    has_ended = tuned.tuning->stop(fmt::format("the set had no step while others had about {}",
                                               kRoundsOfOthersMax * PlannedSet::kStepsPerReport));
  }
  if (has_ended) on_change_(tuned.summary.set);
}

void TuningTurns::on_step(NodeId from, const StepReport& report) {
  Set* set = find(report.set);
  if (set == nullptr || set != tuned_ || set->tuning == nullptr ||
      !set->plans->is_like(report.plan))
    return;
  reports_of_others_ = 0;
  set->tuning->on_step(from, report.step, report.nanoseconds);
}

// The leader's sizes and plans change little once it is tuned, so its all-reduces tell. What takes
// part of a round only, such as another job that begins, is in its median or not.
void TuningTurns::watch_network(uint64_t id, double slowness) {
  Set* set = find(id);
  if (set == nullptr || set != leader_ || slowness == 0) return;
  if (set->slowness_at_start == 0) set->slowness_at_start = slowness;
  const bool is_another = differ(set->slowness_at_start, slowness, PlanRounds::kNetworkChangeMin);
  set->rounds_elsewhere = is_another ? set->rounds_elsewhere + 1 : 0;
}

void TuningTurns::tune_again_on_another_network() {
  if (leader_->rounds_elsewhere < kOtherNetworkRoundsMin) return;
  if (leader_->plans->latest_step() < leader_->tuned_step + steps_between_) return;
  BRAID_LOG_INFO(LogFields{.job = job_.label},
                 "job '{}': the network has changed since the tuning that ended with step {}",
                 job_.label.name, leader_->tuned_step);
  steps_between_ *= 2;
  for (auto& [id, other] : sets_) {
    if (other.tuning != nullptr && other.tuning->is_over()) make(other);
  }
}

std::optional<PlanProposal> TuningTurns::next(uint64_t id) const {
  const auto position = sets_.find(id);
  if (position == sets_.end() || position->second.tuning == nullptr) return std::nullopt;
  const Set& set = position->second;
  const auto change = set.tuning->change();
  if (!change) return std::nullopt;
  PlanProposal proposal;
  proposal.from_step = set.plans->latest_step() + set.notice_steps;
  proposal.settings = change->settings;
  proposal.flows_open = change->flows_open;
  proposal.reports_steps = change->reports_steps;
  return proposal;
}

bool TuningTurns::on_end(const PlanProposal& proposal, bool holds) {
  Set& set = sets_.at(proposal.set);
  if (holds) {
    set.refusals = 0;
    set.settings = proposal.settings;
    streams_ = set.settings->streams;
    set.tuning->on_changed(proposal.from_step);
  } else {
    // Too late for a node: the next one comes with the steps that have begun meanwhile in mind.
    set.notice_steps = std::min(set.notice_steps + 1, kNoticeStepsMost);
    if (++set.refusals < kRefusalsMax) return false;
    set.tuning->give_up(
        fmt::format("the nodes have not agreed on settings for {} times", set.refusals));
  }
  if (!set.tuning->is_over()) return false;
  set.tuned_step = set.plans->latest_step();
  if (leader_ == nullptr && !set.tuning->is_given_up()) leader_ = &set;
  return true;
}

std::string TuningTurns::to_json() const {
  std::string list;
  for (const auto& [id, set] : sets_) {
    if (set.tuning != nullptr) list += (list.empty() ? "" : ",") + set.tuning->to_json();
  }
  return "[" + list + "]";
}

}  // namespace braid
