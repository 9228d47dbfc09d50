// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan_director.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "coordinator/plan_decision.h"
#include "loop/compute.h"

namespace braid {

PlanDirector::PlanDirector(PlannedJob job, PlanningOptions options)
    : job_(std::move(job)),
      options_(std::move(options)),
      network_(job_.nodes.size()),
      codecs_(job_, options_.guard),
      tunings_(job_, options_.tuning, options_.streams, options_.worker, network_,
               [this](uint64_t id) { propose_next(id); }) {}

std::optional<uint64_t> PlanDirector::job_of(const proto::ControlMessage& message) {
  if (const auto* one = message.body_as_PlanReport()) return one->job_key();
  if (const auto* one = message.body_as_PlanAnswer()) return one->job_key();
  if (const auto* one = message.body_as_SetRegistered()) return one->job_key();
  if (const auto* one = message.body_as_SetUnregistered()) return one->job_key();
  if (const auto* one = message.body_as_StepReport()) return one->job_key();
  if (const auto* one = message.body_as_CodecSample()) return one->job_key();
  return std::nullopt;
}

// Nothing, and a line in the log, where what a node has sent makes no sense.
template <typename Message>
const Message* PlanDirector::taken(const Result<Message>& parsed) const {
  if (parsed) return &*parsed;
  BRAID_LOG_WARN(LogFields{.job = job_.label}, "job '{}': {}", job_.label.name,
                 parsed.status().message());
  return nullptr;
}

void PlanDirector::on_control_message(NodeId from, const proto::ControlMessage& message) {
  if (const auto* report = message.body_as_PlanReport()) {
    if (options_.planner == nullptr && !options_.tuning.is_on) return;
    auto parsed = parse_plan_report(*report);
    if (taken(parsed) != nullptr) on_report(from, std::move(*parsed));
  } else if (const auto* answer = message.body_as_PlanAnswer()) {
    if (Set* set = find(answer->set())) set->plans.on_answer(from, *answer);
  } else if (const auto* registered = message.body_as_SetRegistered()) {
    if (!options_.tuning.is_on || job_.nodes.size() < 2) return;
    const auto parsed = parse_set_registered(*registered);
    if (const SetSummary* summary = taken(parsed)) on_set_registered(from, *summary);
  } else if (const auto* unregistered = message.body_as_SetUnregistered()) {
    on_set_unregistered(from, unregistered->set());
  } else if (const auto* timed = message.body_as_StepReport()) {
    const auto parsed = parse_step_report(*timed);
    if (const StepReport* step = taken(parsed)) on_step_report(from, *step);
  } else if (const auto* sampled = message.body_as_CodecSample()) {
    const auto parsed = parse_codec_sample(*sampled);
    if (const CodecSample* sample = taken(parsed)) on_codec_sample(from, *sample);
  }
}

PlanDirector::Set* PlanDirector::find(uint64_t id) {
  const auto position = sets_.find(id);
  return position == sets_.end() ? nullptr : position->second.get();
}

PlanDirector::Set* PlanDirector::find_or_make(uint64_t id) {
  if (Set* set = find(id)) return set;
  if (sets_.size() >= kSetsMax) return nullptr;
  auto made = std::make_unique<Set>(
      job_,
      [this, id](const PlanProposal& proposal, SetPlans::End end) { on_end(id, proposal, end); });
  return sets_.emplace(id, std::move(made)).first->second.get();
}

void PlanDirector::on_set_registered(NodeId from, const SetSummary& summary) {
  Set* set = find_or_make(summary.set);
  if (set != nullptr && set->unregistered.empty())
    tunings_.on_registered(from, summary, set->plans);
}

// What a node says of a set comes in order, so when all have unregistered it nothing follows but
// answers to proposals.
void PlanDirector::on_set_unregistered(NodeId from, uint64_t id) {
  Set* set = find(id);
  if (set == nullptr) return;
  set->unregistered.insert(from);
  if (set->unregistered.size() == 1) {
    set->plans.drop();
    if (tunings_.forget(id)) plan_anew();
    look_anew_beside(id);
  }
  if (set->unregistered.size() < job_.nodes.size()) return;
  sets_.erase(id);
  codecs_.forget(id);
}

void PlanDirector::on_step_report(NodeId from, const StepReport& report) {
  Set* set = find(report.set);
  if (set == nullptr || !set->plans.is_like(report.plan)) return;
  set->plans.see_step(report.step);
  tunings_.on_step(from, report);
}

void PlanDirector::on_codec_sample(NodeId from, const CodecSample& sample) {
  Set* set = find_or_make(sample.set);
  if (set == nullptr) return;
  set->plans.see_step(sample.step);
  codecs_.on_sample(from, sample);
  propose_next(sample.set);
}

void PlanDirector::on_report(NodeId from, PlanReport report) {
  const uint64_t id = report.set;
  Set* found = find_or_make(id);
  if (found == nullptr) return;
  Set& set = *found;
  // What is measured while settings come and go says nothing of those that will stay.
  if (tunings_.is_tuning()) {
    set.plans.see_step(report.step);
    return tunings_.on_progress(id, report.step);
  }
  const std::vector<CostMeasurement> measured = network_.add(report.operations);
  // What was measured under an older plan says nothing about when tensors are ready under this one.
  if (set.plans.is_proposing() || report.plan != set.plans.number()) return;
  auto round = set.rounds.add(from, std::move(report), measured, job_.nodes.size());
  if (!round) return;
  set.plans.see_step(round->step());
  const double slowness = network_.slowness(round->measured);
  if (set.rounds.has_changed(*round, slowness)) {
    network_.change(round->measured);
    if (set.plans.number() != 0) set.is_another_network = true;
  }
  tunings_.watch_network(id, slowness);
  const bool is_due = set.is_another_network || set.rounds.may_replace();
  const bool is_used = set.unregistered.empty();
  if (options_.planner != nullptr && is_due && is_used && !is_deciding_) {
    decide(id, set, std::move(*round));
  } else {
    finish_round(id, set, *round);
  }
}

void PlanDirector::finish_round(uint64_t id, Set& set, const PlanRound& round) {
  const bool is_planned = set.plans.number() != 0 || options_.planner == nullptr;
  if (!set.plans.is_proposing() && !is_deciding_) {
    tunings_.on_round(id,
                      set.rounds.count() >= (is_planned ? kPlannedRoundsMin : kFirstPlanRoundsMin));
  }
  set.rounds.note_slowness(network_.slowness(round.measured));
}

// The other sets that the round's reports name, as far as they were planned.
std::vector<SetTraffic> PlanDirector::traffic_beside(uint64_t id, const PlanRound& round) const {
  std::vector<SetTraffic> others;
  for (const PlanReport::Beside& beside : merge_beside(round.reports)) {
    const auto position = sets_.find(beside.set);
    if (position == sets_.end() || beside.set == id) continue;
    const Set& other = *position->second;
    if (other.measured == nullptr || other.groups.empty() || !other.unregistered.empty()) continue;
    others.push_back({beside.set, other.groups, other.measured});
  }
  return others;
}

// The set has got its first plan, or has gone: plans of those beside it may be replaced at once.
void PlanDirector::look_anew_beside(uint64_t id) {
  const auto names = [this](uint64_t one, uint64_t other) {
    const auto& measured = sets_.at(one)->measured;
    return measured != nullptr &&
           std::ranges::find(measured->beside, other, &PlanReport::Beside::set) !=
               measured->beside.end();
  };
  for (auto& [other, set] : sets_) {
    if (other != id && (names(id, other) || names(other, id))) set->rounds.hold_no_longer();
  }
}

void PlanDirector::decide(uint64_t id, Set& set, PlanRound round) {
  is_deciding_ = true;
  const auto question = std::make_shared<const Question>(
      Question{std::move(round), std::exchange(set.is_another_network, false), set.plans.number(),
               network_.era()});
  PlanningOptions options = options_;
  options.streams = tunings_.streams();
  compute<Result<PlanDecision>>(
      options_.worker,
      [question, options, measured = network_.measurements(), groups = set.groups,
       others = traffic_beside(id, question->round)] {
        return decide_plan(question->round.reports, measured, groups, others, options);
      },
      lifetime_.guard([this, id, question](Result<PlanDecision>& decision) {
        on_decision(id, *question, decision);
      }));
}

void PlanDirector::on_decision(uint64_t id, const Question& question,
                               Result<PlanDecision>& decision) {
  is_deciding_ = false;
  Set* set = find(id);
  if (set == nullptr || !set->unregistered.empty()) return;
  if (set->plans.is_proposing() || set->plans.number() != question.plan ||
      network_.era() != question.era) {
    if (question.is_another_network) set->is_another_network = true;
    return;
  }
  if (decision) {
    take_decision(id, *set, question, *decision);
  } else {
    BRAID_LOG_DEBUG("job '{}': no plan yet: {}", job_.label.name, decision.status().message());
  }
  finish_round(id, *set, question.round);
}

void PlanDirector::take_decision(uint64_t id, Set& set, const Question& question,
                                 PlanDecision& decision) {
  const uint64_t iteration_ns = question.round.iteration_ns();
  network_.take_cost(decision.cost);
  set.measured = decision.measured;
  const double measured_seconds =
      iteration_ns == 0 ? decision.current_seconds : static_cast<double>(iteration_ns) / 1e9;
  const bool pays = decision.predicted_seconds <
                    std::min(decision.current_seconds, measured_seconds) * (1 - options_.min_gain);
  if (set.plans.number() != 0 && !pays) {
    // Settings alone hold: there are no groups of which anything is to be expected.
    if (!question.is_another_network || set.groups.empty()) return;
    // The same groups, with what is to be expected of them now.
    decision.groups = set.groups;
    decision.predicted_seconds = decision.current_seconds;
  }
  const double notice =
      iteration_ns == 0 ? 0 : kNoticeSeconds * 1e9 / static_cast<double>(iteration_ns);
  PlanProposal proposal;
  proposal.set = id;
  proposal.from_step = question.round.step() + std::clamp(static_cast<uint64_t>(std::ceil(notice)),
                                                          set.notice_steps, kNoticeStepsMax);
  proposal.groups = std::move(decision.groups);
  proposal.planner = std::string(options_.planner->name());
  proposal.predicted_ns = static_cast<uint64_t>(decision.predicted_seconds * 1e9);
  proposal.cost = to_json(decision.cost);
  set.plans.propose(std::move(proposal));
}

// While another proposal is on its way nothing is proposed; its end comes back here.
void PlanDirector::propose_next(uint64_t id) {
  Set& set = *sets_.at(id);
  if (set.plans.is_proposing() || !set.unregistered.empty()) return;
  auto proposal = codecs_.next(id, set.plans);
  if (!proposal) proposal = tunings_.next(id);
  if (!proposal) return;
  proposal->set = id;
  set.plans.propose(std::move(*proposal));
}

void PlanDirector::on_end(uint64_t id, const PlanProposal& proposal, SetPlans::End end) {
  Set& set = *sets_.at(id);
  const bool holds = end == SetPlans::End::Holds;
  set.rounds.drop_reports();
  if (proposal.is_plain()) {
    codecs_.on_end(proposal, holds);
    if (holds) set.groups = codecs_.part(id, set.groups);
  } else if (proposal.keeps_groups()) {
    if (tunings_.on_end(proposal, holds)) plan_anew();
  } else if (holds) {
    set.rounds.begin_plan();
    if (set.groups.empty()) look_anew_beside(id);
    set.groups = proposal.groups;
    set.is_another_network = false;
  } else if (end == SetPlans::End::Refused) {
    set.notice_steps = std::min(set.notice_steps * 2, kNoticeStepsMax);  // next time
  }
  propose_next(id);
}

// With other settings reductions take other times: planning begins anew, of all sets.
void PlanDirector::plan_anew() {
  network_.forget();
  for (auto& [id, set] : sets_) {
    set->rounds.forget();
    set->is_another_network = false;
  }
  tunings_.begin_next();
}

}  // namespace braid
