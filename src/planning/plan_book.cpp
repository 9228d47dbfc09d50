// SPDX-License-Identifier: Apache-2.0
#include "planning/plan_book.h"

#include <algorithm>

#include "base/assert.h"
#include "base/hash.h"
#include "base/log.h"

namespace braid {

PlanBook::PlanBook(JobLabel job, uint64_t job_key, uint32_t nodes,
                   std::vector<uint32_t> local_ranks, Actions actions, uint32_t sample_every_steps,
                   std::shared_ptr<JobNumbers> numbers)
    : job_(std::move(job)),
      job_key_(job_key),
      hash_(job_key),
      nodes_(nodes),
      local_ranks_(std::move(local_ranks)),
      actions_(std::move(actions)),
      sample_every_steps_(sample_every_steps),
      numbers_(numbers == nullptr ? std::make_shared<JobNumbers>(job_.name, local_ranks_)
                                  : std::move(numbers)),
      not_finite_(local_ranks_.size()),
      operation_meter_(nodes) {}

PlanBook::Preparer PlanBook::preparer() const {
  std::vector<std::pair<uint64_t, std::shared_ptr<const PlanSet::Tensors>>> known;
  known.reserve(sets_.size());
  for (const auto& [id, set] : sets_) known.emplace_back(id, set.set.shared_tensors());
  return [known = std::move(known), hash = hash_,
          local_ranks = static_cast<uint32_t>(local_ranks_.size())](uint64_t id,
                                                                    PlanSet::Tensors tensors) {
    auto candidate = std::make_shared<Candidate>();
    candidate->id_ = id;
    candidate->tensors_ = std::move(tensors);
    const auto same = std::ranges::find(known, id, &decltype(known)::value_type::first);
    // An id is a hash: it says that sets are the same only where they are.
    if (same != known.end()) {
      candidate->is_another_ = !PlanSet::are_of(*same->second, candidate->tensors_);
      return candidate;
    }
    candidate->sizes_ = PlanSet::check_sizes(candidate->tensors_);
    if (candidate->sizes_)
      candidate->set_.try_emplace(id, hash, id, candidate->tensors_, local_ranks);
    return candidate;
  };
}

Status PlanBook::another(uint32_t local_rank, const Candidate& candidate, size_t tensor) const {
  const PlanSet::Tensor& other = candidate.tensors_[tensor];
  return make_status(
      StatusCode::Mismatch,
      "job '{}': rank {} registers '{}' ({} × {}) among {} planned tensors that "
      "are not those of another rank on this node: count, dtype, codec, state slots, name and "
      "order "
      "must be the same on all ranks",
      job_.name, local_ranks_[local_rank], *other.name, to_string(other.dtype), other.count,
      candidate.tensors_.size());
}

Status PlanBook::check(uint32_t local_rank, const Candidate& candidate, size_t first,
                       size_t count) const {
  const size_t end = std::min(first + count, candidate.tensors_.size());
  for (size_t i = first; i < end; ++i) {
    const uint64_t* known = set_of_tensor_.find(candidate.tensors_[i].hash);
    if (known != nullptr && *known != candidate.id_) return another(local_rank, candidate, i);
  }
  return Status::ok();
}

Status PlanBook::add(uint32_t local_rank, Candidate& candidate) {
  if (candidate.is_another_) return another(local_rank, candidate, 0);
  if (const auto known = sets_.find(candidate.id_); known != sets_.end()) {
    known->second.unregistered[local_rank] = false;
    return Status::ok();
  }
  if (sets_.size() >= kSetsMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "job '{}': more than {} sets of planned tensors", job_.name, kSetsMax);
  }
  BRAID_RETURN_IF_ERROR(candidate.sizes_.with_context(
      fmt::format("job '{}': rank {}", job_.name, local_ranks_[local_rank])));
  BRAID_RETURN_IF_ERROR(make_room(candidate.set_.at(candidate.id_)));
  Set& set = sets_.insert(candidate.set_.extract(candidate.id_)).position->second;
  show_plan(set, set.set.current());
  return nodes_ > 1 ? announce(set) : Status::ok();
}

void PlanBook::index(const Candidate& candidate, size_t first, size_t count) {
  const size_t end = std::min(first + count, candidate.tensors_.size());
  for (size_t i = first; i < end; ++i)
    set_of_tensor_.add(candidate.tensors_[i].hash, candidate.id_);
}

std::shared_ptr<void> PlanBook::remove(uint32_t local_rank, uint64_t set) {
  const auto position = sets_.find(set);
  if (position == sets_.end()) return nullptr;
  std::vector<bool>& unregistered = position->second.unregistered;
  unregistered[local_rank] = true;
  if (std::ranges::find(unregistered, false) != unregistered.end()) return nullptr;
  const bool was_largest = largest_ == &position->second;
  auto removed = std::make_shared<Sets::node_type>(sets_.extract(position));
  if (was_largest) {
    largest_ = nullptr;
    show_no_plan();
    for (const auto& [id, other] : sets_) show_plan(other, other.set.current());
  }
  // A trial of its tuning ends with it.
  if (const PlanSet& gone = removed->mapped().set; gone.current().reports_steps) {
    TransferSettings configured;
    configured.streams = configured.flows = configured.window_bytes = 0;
    const auto others = settings();
    actions_.use(others != nullptr ? *others : configured);
  }
  // Where the coordinator is lost the job ends by that.
  auto message = make_set_unregistered(job_key_, set);
  if (nodes_ > 1) (void)actions_.send(message);
  return removed;
}

std::shared_ptr<void> PlanBook::take_sets() {
  largest_ = nullptr;
  return std::make_shared<std::pair<Sets, HashTree<uint64_t>>>(std::move(sets_),
                                                               std::move(set_of_tensor_));
}

// For what codecs lose, and for what owners keep.
Status PlanBook::make_room(Set& set) {
  PlanSet::Kept kept;
  kept.sample_every_steps = sample_every_steps_;
  for (uint32_t i = 0; nodes_ > 1 && i < set.set.codecs().size(); ++i) {
    auto coded = actions_.code(set.set.codecs()[i], set.set.coded_elements(i));
    if (!coded) return coded.status();
    kept.coded.push_back(std::move(*coded));
  }
  const PlanSet::Tensor& first = set.set.tensors().front();
  if (first.state_slots != 0) {
    auto state = actions_.keep(set.set.elements(), first.state_slots, first.dtype);
    if (!state) return state.status();
    kept.shard = std::move(*state);
    set.is_loaded.resize(set.set.tensors().size());
  }
  set.set.keep(std::move(kept));
  return Status::ok();
}

Status PlanBook::announce(const Set& set) {
  auto message =
      make_set_registered({job_key_, set.set.id(), set.set.tensors_hash(), set.set.bytes(),
                           static_cast<uint32_t>(set.set.tensors().size())});
  return actions_.send(message);
}

Result<std::optional<PlannedTensor>> PlanBook::plan(Submission& submission, uint64_t set,
                                                    uint64_t now_ns) {
  const auto position = sets_.find(set);
  const auto index =
      position == sets_.end() ? std::nullopt : position->second.set.index_of(submission.tensor);
  if (!index) {
    return make_status(StatusCode::Protocol,
                       "job '{}': rank {} submitted '{}', which is in none of its sets", job_.name,
                       local_ranks_[submission.local_rank], *submission.name);
  }
  Set& planned = position->second;
  if (submission.signature.collective != Collective::AllReduce || submission.signature.group != 0) {
    return make_status(StatusCode::InvalidArgument,
                       "job '{}': rank {}: '{}' is planned; each step submits it by itself, as an "
                       "all-reduce",
                       job_.name, local_ranks_[submission.local_rank], *submission.name);
  }
  const Reduction reduction = submission.signature.reduction;
  const CodecSpec& codec = planned.set.tensors()[*index].codec;
  if (codec.kind != CodecKind::None && reduction != Reduction::Sum &&
      reduction != Reduction::Average) {
    return make_status(
        StatusCode::InvalidArgument,
        "job '{}': rank {}: '{}' has the codec {}, which allows sums and averages, and no {}",
        job_.name, local_ranks_[submission.local_rank], *submission.name, to_string(codec),
        to_string(reduction));
  }
  if (planned.pending && submission.step >= planned.pending->from_step) {
    planned.held.push_back({std::move(submission), *index, now_ns});
    return std::optional<PlannedTensor>();
  }
  auto form = plan(planned, submission, *index, now_ns);
  if (!form) return form.status();
  return std::optional<PlannedTensor>(std::move(*form));
}

Result<PlannedTensor> PlanBook::plan(Set& set, const Submission& submission, uint32_t tensor,
                                     uint64_t now_ns) {
  const uint64_t step = submission.step;
  const uint32_t local_rank = submission.local_rank;
  set.begun_step = std::max(set.begun_step.value_or(0), step);
  const PlanSet::AgreedPlan& plan = set.set.plan_of(step);
  if (plan.number > set.plan_begun) begin_plan(set, plan);
  PlannedTensor planned = set.set.find(tensor, step);
  if (planned.form->shard != nullptr) BRAID_RETURN_IF_ERROR(check_loaded(set, tensor, submission));
  // What is loaded are an optimizer's values, and may be halves of them.
  if (submission.input != nullptr && submission.update.takes_gradient() &&
      !looks_finite(submission.input, submission.input_bytes, submission.signature.dtype)) {
    not_finite_[local_rank].add(step, *submission.name);
  }
  set.times.on_submit(local_rank, step, now_ns);
  if (!set.meter.on_submit(local_rank, tensor, step, now_ns)) return planned;
  // Connections and caches settle in these.
  if (set.meter.steps() == PlanMeter::kStepsIgnored + 1) operation_meter_.take();
  if (plan.number != set.plan_measured) {
    set.plan_measured = plan.number;
    set.meter.begin_window();
  }
  if (set.meter.steps() >= set.steps_reported + kStepsPerReport) BRAID_RETURN_IF_ERROR(report(set));
  return planned;
}

Status PlanBook::check_loaded(Set& set, uint32_t tensor, const Submission& submission) const {
  const UpdateStep& update = submission.update;
  if (update.action == UpdateAction::Load && update.slot == StateSlot::Weights)
    set.is_loaded[tensor] = true;
  if (set.is_loaded[tensor]) return Status::ok();
  return make_status(StatusCode::InvalidArgument,
                     "job '{}': rank {} asks for {} of '{}' step {}, whose weights were never "
                     "loaded; the first update of a tensor loads them",
                     job_.name, local_ranks_[submission.local_rank], to_string(update),
                     *submission.name, submission.step);
}

void PlanBook::begin_plan(Set& set, const PlanSet::AgreedPlan& plan) {
  const auto before = set.settings_begun;
  set.plan_begun = plan.number;
  set.settings_begun = plan.settings;
  if (plan.settings == nullptr || (before != nullptr && *before == *plan.settings)) return;
  operation_meter_.take();  // what was measured with the others says nothing
  actions_.use(*plan.settings);
}

Status PlanBook::report(Set& set) {
  set.steps_reported = set.meter.steps();
  carry_meter_.note(actions_.work());
  PlanReport report;
  report.job_key = job_key_;
  report.set = set.set.id();
  report.plan = set.plan_measured;
  report.step = set.begun_step.value_or(0);
  for (uint32_t i = 0; i < set.set.tensors().size(); ++i) {
    const PlanSet::Tensor& tensor = set.set.tensors()[i];
    const CodecSpec& codec = set.set.current_codec(i);
    report.tensors.push_back(tensor.hash);
    report.counts.push_back(tensor.count);
    report.dtypes.push_back(tensor.dtype);
    report.codecs.push_back(codec.kind == CodecKind::None ? 0 : fnv1a64(to_string(codec)));
  }
  report.ready_ns = set.meter.ready_ns(kReadyQuantile);
  report.forward_ns = set.meter.forward_ns();
  report.iteration_ns = set.meter.iteration_ns();
  for (const OperationMeter::Sample& sample : operation_meter_.take())
    report.operations.push_back({sample.id, sample.bytes, sample.nanoseconds});
  set.meter.begin_window();
  auto message = make_plan_report(report);
  return actions_.send(message);
}

void PlanBook::on_start(const OperationKey& key, uint64_t bytes) {
  if (set_of_tensor_.contains(key.tensor)) operation_meter_.on_start(key, bytes);
}

void PlanBook::on_go(const OperationKey& key, uint64_t now_ns, uint64_t carried) {
  operation_meter_.on_go(key, now_ns, carried);
}

Status PlanBook::on_done(const OperationKey& key, uint64_t now_ns, uint64_t carried) {
  const uint64_t* set = set_of_tensor_.find(key.tensor);
  if (set == nullptr) return Status::ok();
  operation_meter_.on_done(key, now_ns, carried);
  const auto position = sets_.find(*set);
  if (position == sets_.end()) return Status::ok();  // it is being taken out of the index
  Set& own = position->second;
  own.meter.on_published(now_ns);
  const PlanSet::AgreedPlan& plan = own.set.plan_of(key.step);
  const auto end = own.clock.on_done(key.step, plan.groups.size(), now_ns);
  if (!end) return Status::ok();
  note_end(own, key.step, now_ns);
  show_plan(own, plan);
  if (!end->step_ns || !plan.reports_steps) return Status::ok();
  auto message = make_step_report({job_key_, own.set.id(), plan.number, key.step, *end->step_ns});
  return actions_.send(message);
}

void PlanBook::note_end(Set& set, uint64_t step, uint64_t now_ns) {
  const auto times = set.times.on_end(step, now_ns);
  if (!times) return;
  numbers_->steps.add(1);
  numbers_->step_ns.add(times->step_ns);
  numbers_->exposed_ns.add(times->exposed_ns);
  for (size_t i = 0; i < numbers_->ranks.size(); ++i) {
    numbers_->ranks[i].wait_ns.add(times->wait_ns[i]);
    numbers_->ranks[i].late_ns.add(times->late_ns[i]);
  }
}

// Shows the plan of the largest set. `plan`: the one that the set follows now.
void PlanBook::show_plan(const Set& set, const PlanSet::AgreedPlan& plan) {
  if (largest_ == nullptr || set.bytes > largest_->bytes) largest_ = &set;
  if (largest_ != &set) return;
  numbers_->planned_bytes.set(set.bytes);
  numbers_->plan.set(plan.number);
  numbers_->plan_groups.set(plan.groups.size());
  numbers_->predicted_ns.set(set.predicted_ns);
  numbers_->iteration_ns.set(set.meter.iteration_ns());
  numbers_->is_tuning.set(plan.reports_steps ? 1 : 0);
}

void PlanBook::show_no_plan() {
  for (SharedNumber* const number :
       {&numbers_->planned_bytes, &numbers_->plan, &numbers_->plan_groups, &numbers_->predicted_ns,
        &numbers_->iteration_ns, &numbers_->is_tuning})
    number->set(0);
}

Status PlanBook::on_proposal(const PlanProposal& proposal) {
  const auto position = sets_.find(proposal.set);
  if (position == sets_.end()) {
    auto message = make_plan_answer(proposal, false, 0);
    return actions_.send(message);
  }
  Set& set = position->second;
  if (proposal.is_plain()) {
    BRAID_RETURN_IF_ERROR(check_plain(set, proposal));
  } else if (!proposal.keeps_groups()) {
    BRAID_RETURN_IF_ERROR(set.set.check(proposal.groups)
                              .with_context(fmt::format("job '{}': the coordinator", job_.name)));
  }
  if (proposal.flows_open != 0) actions_.add_flows(proposal.flows_open);
  const bool in_time = (!set.begun_step || *set.begun_step < proposal.from_step) &&
                       proposal.from_step > set.set.current().from_step && !set.pending;
  if (in_time) set.pending = proposal;
  auto message = make_plan_answer(proposal, in_time, set.begun_step.value_or(0));
  return actions_.send(message);
}

Result<std::vector<PlanBook::PlannedSubmission>> PlanBook::on_verdict(
    const proto::PlanVerdict& verdict) {
  std::vector<PlannedSubmission> freed;
  const auto position = sets_.find(verdict.set());
  if (position == sets_.end()) return freed;
  Set& set = position->second;
  if (!set.pending || set.pending->number != verdict.number()) return freed;
  const PlanProposal proposal = std::move(*set.pending);
  set.pending.reset();
  if (verdict.holds() && proposal.is_plain()) {
    end_codecs(set, proposal);
  } else if (verdict.holds() && proposal.keeps_groups()) {
    set.set.add(proposal.number, proposal.from_step, *proposal.settings, proposal.reports_steps);
  } else if (verdict.holds()) {
    set.set.add(proposal.number, proposal.from_step, proposal.groups);
    set.planner = proposal.planner;
    set.predicted_ns = proposal.predicted_ns;
    set.cost = proposal.cost;
    BRAID_LOG_INFO(
        LogFields{.job = job_},
        "job '{}': plan {} by '{}': {} tensors in {} groups from step {} on; predicted: {:.1f} ms",
        job_.name, proposal.number, proposal.planner, set.set.tensors().size(),
        proposal.groups.size(), proposal.from_step,
        static_cast<double>(proposal.predicted_ns) / 1e6);
  }
  for (Held& one : std::exchange(set.held, {})) {
    auto planned = plan(set, one.submission, one.tensor, one.submitted_ns);
    if (!planned) return planned.status();
    freed.push_back({std::move(one.submission), std::move(*planned)});
  }
  return freed;
}

std::shared_ptr<const TransferSettings> PlanBook::settings() const {
  for (const auto& [id, set] : sets_) {
    if (set.set.current().settings != nullptr) return set.set.current().settings;
  }
  return nullptr;
}

bool PlanBook::holds_submissions() const {
  return std::any_of(sets_.begin(), sets_.end(),
                     [](const auto& entry) { return !entry.second.held.empty(); });
}

bool PlanBook::holds_submissions_of(uint32_t local_rank) const {
  return std::any_of(sets_.begin(), sets_.end(), [local_rank](const auto& entry) {
    return std::any_of(
        entry.second.held.begin(), entry.second.held.end(),
        [local_rank](const Held& one) { return one.submission.local_rank == local_rank; });
  });
}

Status PlanBook::check_deadlines(uint64_t now_ns) const {
  for (const auto& [id, set] : sets_) {
    // Each submission has a timeout of its own.
    const auto late = std::find_if(set.held.begin(), set.held.end(), [now_ns](const Held& one) {
      return one.submission.deadline_ns <= now_ns;
    });
    if (late == set.held.end()) continue;
    return make_status(StatusCode::DeadlineExceeded,
                       "job '{}': '{}' step {} waited {} ms for the coordinator to say whether "
                       "plan {} holds",
                       job_.name, *late->submission.name, late->submission.step,
                       late->submission.timeout_ms, set.pending ? set.pending->number : 0);
  }
  return Status::ok();
}

}  // namespace braid
