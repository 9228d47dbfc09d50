// SPDX-License-Identifier: Apache-2.0
#include "planning/planned_set.h"

#include <algorithm>

#include "base/hash.h"
#include "messages/codec_sample.h"

namespace braid {
namespace {

// "'layer0' and 3 more tensors"
std::string describe_group(const PlanSet& set, const PlainGroup& group) {
  const std::string& first = *set.tensors()[*set.index_of(group.tensors.front())].name;
  const size_t more = group.tensors.size() - 1;
  if (more == 0) return fmt::format("'{}'", first);
  return fmt::format("'{}' and {} more {}", first, more, more == 1 ? "tensor" : "tensors");
}

}  // namespace

PlannedSet::PlannedSet(const JobHash& job, uint64_t id, PlanSet::Tensors tensors,
                       uint32_t local_ranks)
    : set_(job, id, std::move(tensors)),
      bytes_(set_.bytes()),
      meter_(static_cast<uint32_t>(set_.tensors().size()), local_ranks),
      times_(local_ranks),
      unregistered_(local_ranks) {}

Status PlannedSet::begin(const PlanJob& job) {
  auto kept = job.actions.keep(set_);
  if (!kept) return kept.status();
  kept->sample_every_steps = job.sample_every_steps;
  if (kept->shard != nullptr) is_loaded_.resize(set_.tensors().size());
  set_.keep(std::move(*kept));
  return Status::ok();
}

Result<std::optional<PlannedTensor>> PlannedSet::plan(PlanJob& job, Submission& submission,
                                                      uint32_t tensor, uint64_t now_ns) {
  BRAID_RETURN_IF_ERROR(check_kind(job, submission, tensor));
  if (pending_ && submission.step >= pending_->from_step) {
    held_.push_back({std::move(submission), tensor, now_ns});
    return std::optional<PlannedTensor>();
  }
  auto planned = pass_on(job, submission, tensor, now_ns);
  if (!planned) return planned.status();
  return std::optional<PlannedTensor>(std::move(*planned));
}

Status PlannedSet::check_kind(const PlanJob& job, const Submission& submission,
                              uint32_t tensor) const {
  const Signature& signature = submission.signature;
  if (signature.collective != Collective::AllReduce || signature.group != 0) {
    return make_status(StatusCode::InvalidArgument,
                       "job '{}': rank {}: '{}' is planned; each step submits it by itself, as an "
                       "all-reduce",
                       job.label.name, job.local_ranks[submission.local_rank], *submission.name);
  }
  const CodecSpec& codec = set_.tensors()[tensor].codec;
  if (codec.kind == CodecKind::None || signature.reduction == Reduction::Sum ||
      signature.reduction == Reduction::Average)
    return Status::ok();
  return make_status(StatusCode::InvalidArgument,
                     "job '{}': rank {}: '{}' has the codec {}, which allows sums and averages, "
                     "and no {}",
                     job.label.name, job.local_ranks[submission.local_rank], *submission.name,
                     to_string(codec), to_string(signature.reduction));
}

Result<PlannedTensor> PlannedSet::pass_on(PlanJob& job, const Submission& submission,
                                          uint32_t tensor, uint64_t now_ns) {
  const uint64_t step = submission.step;
  const uint32_t local_rank = submission.local_rank;
  if (!begun_step_ || step > *begun_step_) job.rhythm.on_begin(set_.id(), now_ns);
  begun_step_ = std::max(begun_step_.value_or(0), step);
  const PlanSet::AgreedPlan& plan = set_.plan_of(step);
  if (plan.number > plan_begun_) begin_plan(job, plan);
  PlannedTensor planned = set_.find(tensor, step);
  if (planned.form->shard != nullptr) BRAID_RETURN_IF_ERROR(check_loaded(job, submission, tensor));
  // What is loaded are an optimizer's values, and may be halves of them.
  if (submission.input != nullptr && submission.update.takes_gradient() &&
      !looks_finite(submission.input, submission.input_bytes, submission.signature.dtype)) {
    job.not_finite[local_rank].add(step, *submission.name);
  }
  times_.on_submit(local_rank, step, now_ns);
  if (!meter_.on_submit(local_rank, tensor, step, now_ns)) return planned;
  // Connections and caches settle in these.
  if (meter_.steps() == PlanMeter::kStepsIgnored + 1) job.operation_meter.take();
  if (plan.number != plan_measured_) {
    plan_measured_ = plan.number;
    meter_.begin_window();
  }
  if (meter_.steps() >= steps_reported_ + kStepsPerReport) BRAID_RETURN_IF_ERROR(report(job));
  return planned;
}

Status PlannedSet::check_loaded(const PlanJob& job, const Submission& submission, uint32_t tensor) {
  const UpdateStep& update = submission.update;
  if (update.action == UpdateAction::Load && update.slot == StateSlot::Weights)
    is_loaded_[tensor] = true;
  if (is_loaded_[tensor]) return Status::ok();
  return make_status(StatusCode::InvalidArgument,
                     "job '{}': rank {} asks for {} of '{}' step {}, whose weights were never "
                     "loaded; the first update of a tensor loads them",
                     job.label.name, job.local_ranks[submission.local_rank], to_string(update),
                     *submission.name, submission.step);
}

void PlannedSet::begin_plan(PlanJob& job, const PlanSet::AgreedPlan& plan) {
  const auto before = std::exchange(settings_begun_, plan.settings);
  plan_begun_ = plan.number;
  if (plan.settings == nullptr || (before != nullptr && *before == *plan.settings)) return;
  job.operation_meter.take();  // what was measured with the others says nothing
  job.actions.use(*plan.settings);
}

Status PlannedSet::report(PlanJob& job) {
  steps_reported_ = meter_.steps();
  job.carry_meter.note(job.actions.work());
  PlanReport report;
  report.job_key = job.key;
  report.set = set_.id();
  report.plan = plan_measured_;
  report.step = begun_step_.value_or(0);
  for (uint32_t i = 0; i < set_.tensors().size(); ++i) {
    const PlanSet::Tensor& tensor = set_.tensors()[i];
    const CodecSpec& codec = set_.current_codec(i);
    report.tensors.push_back(tensor.hash);
    report.counts.push_back(tensor.count);
    report.dtypes.push_back(tensor.dtype);
    report.codecs.push_back(codec.kind == CodecKind::None ? 0 : fnv1a64(to_string(codec)));
  }
  report.ready_ns = meter_.ready_ns(kReadyQuantile);
  report.forward_ns = meter_.forward_ns();
  report.iteration_ns = meter_.iteration_ns();
  for (const OperationMeter::Sample& sample : job.operation_meter.take())
    report.operations.push_back({sample.id, sample.bytes, sample.nanoseconds});
  report.beside = job.rhythm.beside(set_.id());
  meter_.begin_window();
  auto message = make_plan_report(report);
  return job.actions.send(message);
}

std::optional<StepClock::End> PlannedSet::on_done(PlanJob& job, uint64_t step, uint64_t now_ns) {
  meter_.on_published(now_ns);
  const auto end = clock_.on_done(step, set_.plan_of(step).groups.size(), now_ns);
  if (!end) return end;
  const auto times = times_.on_end(step, now_ns);
  if (!times) return end;
  JobNumbers& numbers = *job.numbers;
  numbers.steps.add(1);
  numbers.step_ns.add(times->step_ns);
  numbers.exposed_ns.add(times->exposed_ns);
  for (size_t i = 0; i < numbers.ranks.size(); ++i) {
    numbers.ranks[i].wait_ns.add(times->wait_ns[i]);
    numbers.ranks[i].late_ns.add(times->late_ns[i]);
  }
  return end;
}

Status PlannedSet::on_loss(const PlanJob& job, const OperationKey& key,
                           const CodecLoss& loss) const {
  const uint32_t tensor = *set_.index_of(key.tensor);
  const PlannedTensor planned = set_.find(tensor, key.step);
  CodecSample sample;
  sample.job_key = job.key;
  sample.set = set_.id();
  sample.plan = *planned.form->plan;
  sample.step = key.step;
  sample.codec = planned.form->codec;
  for (const TensorGroup::Member& member : planned.form->group->members)
    sample.tensors.push_back(member.tensor);
  sample.loss = loss;
  auto message = make_codec_sample(sample);
  return job.actions.send(message);
}

Status PlannedSet::on_proposal(const PlanJob& job, const PlanProposal& proposal) {
  Status checked;
  if (!proposal.is_plain() && !proposal.keeps_groups()) checked = set_.check(proposal.groups);
  for (size_t i = 0; checked && i < proposal.plain.size(); ++i)
    checked = set_.check_plain(proposal.plain[i].tensors);
  if (!checked)
    return checked.with_context(fmt::format("job '{}': the coordinator", job.label.name));
  if (proposal.flows_open != 0) job.actions.add_flows(proposal.flows_open);
  const bool in_time = (!begun_step_ || *begun_step_ < proposal.from_step) &&
                       proposal.from_step > set_.current().from_step && !pending_;
  if (in_time) pending_ = proposal;
  auto message = make_plan_answer(proposal, in_time, begun_step_.value_or(0));
  return job.actions.send(message);
}

Result<std::vector<PlannedSubmission>> PlannedSet::on_verdict(PlanJob& job,
                                                              const proto::PlanVerdict& verdict) {
  std::vector<PlannedSubmission> freed;
  if (!pending_ || pending_->number != verdict.number()) return freed;
  const PlanProposal proposal = std::move(*pending_);
  pending_.reset();
  if (verdict.holds()) adopt(job, proposal);
  for (Held& one : std::exchange(held_, {})) {
    auto planned = pass_on(job, one.submission, one.tensor, one.submitted_ns);
    if (!planned) return planned.status();
    freed.push_back({std::move(one.submission), std::move(*planned)});
  }
  return freed;
}

void PlannedSet::adopt(const PlanJob& job, const PlanProposal& proposal) {
  if (proposal.is_plain()) return end_codecs(job, proposal);
  if (proposal.keeps_groups()) {
    set_.add(proposal.number, proposal.from_step, *proposal.settings, proposal.reports_steps);
    return;
  }
  const bool is_only_predicted_anew = !origin_.planner.empty() && set_.merges_as(proposal.groups);
  set_.add(proposal.number, proposal.from_step, proposal.groups);
  origin_ = {proposal.planner, proposal.predicted_ns, proposal.cost};
  const double predicted_ms = static_cast<double>(proposal.predicted_ns) / 1e6;
  if (is_only_predicted_anew) {
    BRAID_LOG_DEBUG(
        "job '{}': plan {} by '{}': the groups of the plan before it from step {} on; predicted: "
        "{:.1f} ms",
        job.label.name, proposal.number, proposal.planner, proposal.from_step, predicted_ms);
    return;
  }
  BRAID_LOG_INFO(
      LogFields{.job = job.label},
      "job '{}': plan {} by '{}': {} tensors in {} groups from step {} on; predicted: {:.1f} ms",
      job.label.name, proposal.number, proposal.planner, set_.tensors().size(),
      proposal.groups.size(), proposal.from_step, predicted_ms);
}

// The node's part of guarding codecs: those that lose too much end on all nodes.
void PlannedSet::end_codecs(const PlanJob& job, const PlanProposal& proposal) {
  std::vector<uint64_t> tensors;
  for (const PlainGroup& group : proposal.plain) {
    tensors.insert(tensors.end(), group.tensors.begin(), group.tensors.end());
    const uint32_t first = *set_.index_of(group.tensors.front());
    BRAID_LOG_WARN(LogFields{.job = job.label},
                   "job '{}': {} {} without the codec {} from step {} on: its {} is {:.4g}, and "
                   "the coordinator's guard.limits has {:.4g}",
                   job.label.name, describe_group(set_, group),
                   group.tensors.size() == 1 ? "goes" : "go",
                   to_string(set_.tensors()[first].codec), proposal.from_step,
                   to_string(group.limit), group.measured, group.allowed);
    plain_.emplace_back(proposal.from_step, group);
  }
  set_.add_plain(proposal.number, proposal.from_step, tensors);
}

bool PlannedSet::holds_submissions_of(uint32_t local_rank) const {
  return std::ranges::any_of(
      held_, [local_rank](const Held& one) { return one.submission.local_rank == local_rank; });
}

// Each submission has a timeout of its own.
Status PlannedSet::check_deadlines(const PlanJob& job, uint64_t now_ns) const {
  const auto late = std::ranges::find_if(
      held_, [now_ns](const Held& one) { return one.submission.deadline_ns <= now_ns; });
  if (late == held_.end()) return Status::ok();
  return make_status(StatusCode::DeadlineExceeded,
                     "job '{}': '{}' step {} waited {} ms for the coordinator to say whether "
                     "plan {} holds",
                     job.label.name, *late->submission.name, late->submission.step,
                     late->submission.timeout_ms, pending_ ? pending_->number : 0);
}

}  // namespace braid
