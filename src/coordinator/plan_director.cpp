// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan_director.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "coordinator/plan_decision.h"
#include "loop/compute.h"

namespace braid {

PlanDirector::PlanDirector(Loop& loop, JobLabel job, uint64_t job_key, std::vector<NodeId> nodes,
                           PlanningOptions options, Send send)
    : loop_(loop),
      job_(std::move(job)),
      job_key_(job_key),
      nodes_(std::move(nodes)),
      options_(std::move(options)),
      send_(std::move(send)),
      join_(nodes_.size()),
      streams_(options_.streams),
      guard_(job_.name, nodes_.size(), options_.guard),
      board_timer_(loop) {}

std::optional<uint64_t> PlanDirector::job_of(const proto::ControlMessage& message) {
  switch (message.body_type()) {
    case proto::ControlBody::PlanReport:
      return message.body_as_PlanReport()->job_key();
    case proto::ControlBody::PlanAnswer:
      return message.body_as_PlanAnswer()->job_key();
    case proto::ControlBody::SetRegistered:
      return message.body_as_SetRegistered()->job_key();
    case proto::ControlBody::SetUnregistered:
      return message.body_as_SetUnregistered()->job_key();
    case proto::ControlBody::StepReport:
      return message.body_as_StepReport()->job_key();
    case proto::ControlBody::CodecSample:
      return message.body_as_CodecSample()->job_key();
    default:
      return std::nullopt;
  }
}

void PlanDirector::on_control_message(NodeId from, const proto::ControlMessage& message) {
  switch (message.body_type()) {
    case proto::ControlBody::PlanReport:
      return on_report(from, *message.body_as_PlanReport());
    case proto::ControlBody::PlanAnswer:
      return on_answer(from, *message.body_as_PlanAnswer());
    case proto::ControlBody::SetRegistered:
      return on_set_registered(from, *message.body_as_SetRegistered());
    case proto::ControlBody::SetUnregistered:
      return on_set_unregistered(from, *message.body_as_SetUnregistered());
    case proto::ControlBody::StepReport:
      return on_step_report(from, *message.body_as_StepReport());
    case proto::ControlBody::CodecSample:
      return on_codec_sample(from, *message.body_as_CodecSample());
    default:
      return;
  }
}

PlanDirector::Set* PlanDirector::find_or_make(uint64_t id) {
  const auto position = sets_.find(id);
  if (position != sets_.end()) return position->second.get();
  if (sets_.size() >= kSetsMax) return nullptr;
  return sets_.emplace(id, std::make_unique<Set>(loop_)).first->second.get();
}

// What a node says of a set comes in order, so when all have unregistered it nothing follows but
// answers to proposals.
void PlanDirector::on_set_unregistered(NodeId from, const proto::SetUnregistered& message) {
  const auto position = sets_.find(message.set());
  if (position == sets_.end()) return;
  Set& set = *position->second;
  set.unregistered.insert(from);
  if (set.unregistered.size() == 1) end_planning(message.set(), set);
  if (set.unregistered.size() < nodes_.size()) return;
  sets_.erase(position);
  guard_.forget(message.set());
  show_readings();
}

void PlanDirector::end_planning(uint64_t id, Set& set) {
  if (set.proposal) conclude(id, set, false);
  const bool was_tuning = tuned_ == &set && is_tuning();
  if (tuned_ == &set) tuned_ = nullptr;
  if (leader_ == &set) leader_ = nullptr;
  set.tuning.reset();
  if (!was_tuning) return;
  forget_measurements();
  begin_known_tuning();
}

void PlanDirector::on_report(NodeId from, const proto::PlanReport& message) {
  if (options_.planner == nullptr && !options_.tuning.is_on) return;
  auto report = parse_plan_report(message);
  if (!report) return warn(report.status());
  const uint64_t id = report->set;
  Set* found = find_or_make(id);
  if (found == nullptr) return;
  Set& set = *found;
  // What is measured while settings come and go says nothing of those that will stay.
  if (is_tuning()) return watch_tuning(id, set, report->step);
  const std::vector<CostMeasurement> measured = join_.add(report->operations);
  measurements_.add(measured);
  // What was measured under an older plan says nothing about when tensors are ready under this one.
  if (set.proposal || report->plan != set.plan) return;
  set.reports[from] = std::move(report).value();
  set.latest.insert(set.latest.end(), measured.begin(), measured.end());
  if (set.reports.size() < nodes_.size()) return;
  for (const auto& [node, one] : set.reports) set.latest_step = std::max(set.latest_step, one.step);
  if (has_changed(set)) set.is_another_network = true;
  Round round;
  round.measured = std::exchange(set.latest, {});
  watch_network(set, round.measured);
  for (auto& [node, one] : std::exchange(set.reports, {})) round.reports.push_back(std::move(one));
  const bool is_due = set.is_another_network || set.rounds >= set.rounds_to_hold;
  const bool is_used = set.unregistered.empty();
  if (options_.planner != nullptr && is_due && is_used && !is_deciding_) {
    decide(id, set, std::move(round));
  } else {
    finish_round(set, round);
  }
}

void PlanDirector::warn(const Status& status) const {
  BRAID_LOG_WARN(LogFields{.job = job_}, "job '{}': {}", job_.name, status.message());
}

void PlanDirector::finish_round(Set& set, const Round& round) {
  if (!set.proposal && !is_deciding_) begin_tuning_if_settled(set);
  if (set.slowness == 0 && reference_) set.slowness = slowness(round.measured, *reference_);
}

// A plan's first iterations have nothing to be compared with: they are why it was made. But what
// its all-reduces take does not depend on it, so a network that changes together with the plan is
// noticed all the same.
bool PlanDirector::has_changed(Set& set) {
  uint64_t iteration_ns = 0;
  for (const auto& [node, report] : set.reports)
    iteration_ns = std::max(iteration_ns, report.iteration_ns);
  if (++set.rounds == 1) set.iteration_ns = 0;
  if (set.iteration_ns == 0) set.iteration_ns = iteration_ns;
  const double slowness_now = reference_ ? slowness(set.latest, *reference_) : 0;
  const bool is_another = differ(static_cast<double>(set.iteration_ns),
                                 static_cast<double>(iteration_ns), kIterationChangeMin) ||
                          differ(set.slowness, slowness_now, kNetworkChangeMin);
  if (!is_another) return false;
  ++era_;
  if (cost_) measurements_.rescale(set.latest, *cost_);
  set.rounds_to_hold = 0;
  set.iteration_ns = iteration_ns;
  set.slowness = slowness_now;
  return set.plan != 0;
}

void PlanDirector::decide(uint64_t id, Set& set, Round round) {
  is_deciding_ = true;
  round.is_another_network = std::exchange(set.is_another_network, false);
  round.plan = set.plan;
  round.era = era_;
  PlanningOptions options = options_;
  options.streams = streams_;
  const auto shared = std::make_shared<const Round>(std::move(round));
  compute<Result<PlanDecision>>(
      options_.worker,
      [shared, options, measured = measurements_.all(), groups = set.groups] {
        std::vector<const PlanReport*> reports;
        for (const PlanReport& report : shared->reports) reports.push_back(&report);
        return decide_plan(reports, measured, groups, options);
      },
      lifetime_.guard([this, id, shared](Result<PlanDecision>& decision) {
        on_decision(id, *shared, decision);
      }));
}

void PlanDirector::on_decision(uint64_t id, const Round& round, Result<PlanDecision>& decision) {
  is_deciding_ = false;
  const auto position = sets_.find(id);
  if (position == sets_.end() || !position->second->unregistered.empty()) return;
  Set& set = *position->second;
  if (set.proposal || set.plan != round.plan || era_ != round.era) {
    if (round.is_another_network) set.is_another_network = true;
    return;
  }
  if (decision) {
    take_decision(id, set, round, *decision);
  } else {
    BRAID_LOG_DEBUG("job '{}': no plan yet: {}", job_.name, decision.status().message());
  }
  finish_round(set, round);
}

void PlanDirector::take_decision(uint64_t id, Set& set, const Round& round,
                                 PlanDecision& decision) {
  uint64_t step = 0;
  uint64_t iteration_ns = 0;
  for (const PlanReport& report : round.reports) {
    step = std::max(step, report.step);
    iteration_ns = std::max(iteration_ns, report.iteration_ns);
  }
  cost_ = decision.cost;
  if (!reference_) reference_ = cost_;
  const double measured_seconds =
      iteration_ns == 0 ? decision.current_seconds : static_cast<double>(iteration_ns) / 1e9;
  const bool pays = decision.predicted_seconds <
                    std::min(decision.current_seconds, measured_seconds) * (1 - options_.min_gain);
  if (set.plan != 0 && !pays) {
    // Settings alone hold: there are no groups of which anything is to be expected.
    if (!round.is_another_network || set.groups.empty()) return;
    // The same groups, with what is to be expected of them now.
    decision.groups = set.groups;
    decision.predicted_seconds = decision.current_seconds;
  }

  const double notice =
      iteration_ns == 0 ? 0 : kNoticeSeconds * 1e9 / static_cast<double>(iteration_ns);
  PlanProposal proposal;
  proposal.set = id;
  proposal.number = ++set.last_number;
  proposal.from_step = step + std::clamp(static_cast<uint64_t>(std::ceil(notice)), set.notice_steps,
                                         kNoticeStepsMax);
  proposal.groups = std::move(decision.groups);
  proposal.planner = std::string(options_.planner->name());
  proposal.predicted_ns = static_cast<uint64_t>(decision.predicted_seconds * 1e9);
  proposal.cost = to_json(decision.cost);
  propose(set, std::move(proposal));
}

void PlanDirector::propose(Set& set, PlanProposal proposal) {
  proposal.job_key = job_key_;
  set.accepted.clear();
  set.proposal = std::move(proposal);
  for (const NodeId node : nodes_) send_(node, make_plan_proposal(*set.proposal));
  set.timer.start_once(options_.answer_timeout_ms, [this, &set] {
    BRAID_LOG_WARN(LogFields{.job = job_},
                   "job '{}': {} of {} nodes answered to plan {} within {} ms: dropped", job_.name,
                   set.accepted.size(), nodes_.size(), set.proposal->number,
                   options_.answer_timeout_ms);
    conclude(set.proposal->set, set, false);
  });
}

void PlanDirector::on_answer(NodeId from, const proto::PlanAnswer& answer) {
  const auto position = sets_.find(answer.set());
  if (position == sets_.end()) return;
  Set& set = *position->second;
  if (!set.proposal || set.proposal->number != answer.number() || answer.step() > kStepNumberMax)
    return;
  set.latest_step = std::max(set.latest_step, answer.step());
  if (!answer.accepted()) {
    // Next time with more notice.
    if (!set.proposal->keeps_groups() && !set.proposal->is_plain())
      set.notice_steps = std::min(set.notice_steps * 2, kNoticeStepsMax);
    BRAID_LOG_DEBUG("job '{}': plan {} came too late for a node that is in step {} already",
                    job_.name, answer.number(), answer.step());
    return conclude(answer.set(), set, false);
  }
  set.accepted.insert(from);
  if (set.accepted.size() == nodes_.size()) conclude(answer.set(), set, true);
}

void PlanDirector::conclude(uint64_t id, Set& set, bool holds) {
  set.timer.stop();
  const PlanProposal proposal = std::move(*set.proposal);
  set.proposal.reset();
  set.reports.clear();
  set.latest.clear();
  if (holds) {
    set.plan = proposal.number;
    set.plan_from_step = proposal.from_step;
    if (!proposal.is_plain()) set.settings_plan = proposal.number;
  }
  if (holds && !proposal.keeps_groups() && !proposal.is_plain()) {
    set.rounds = 0;
    set.rounds_to_hold = std::clamp(set.rounds_to_hold * 2, 2U, kRoundsMax);
    set.groups = proposal.groups;
    set.is_another_network = false;
  }
  for (const NodeId node : nodes_) send_(node, make_plan_verdict(proposal, holds));
  if (proposal.is_plain()) on_plain_concluded(set, proposal, holds);
  if (proposal.keeps_groups()) {
    on_settings_concluded(id, set, holds, proposal.from_step);
  } else if (tuned_ == &set) {
    change_settings(id, set);
  }
  propose_plain(id, set);
}

}  // namespace braid
