// SPDX-License-Identifier: Apache-2.0
#include "operation/gathered_operation.h"

#include <algorithm>

namespace braid {
namespace {

constexpr uint64_t kResultAlignment = 64;

const OperationForm kNotPlanned;

bool is_one_round(const UpdateStep& one, const UpdateStep& other) {
  return one.action == other.action && one.slot == other.slot && one.bits == other.bits &&
         one.has(kUpdatePullBFloat16) == other.has(kUpdatePullBFloat16);
}

}  // namespace

GatheredOperation::GatheredOperation(const JobOnNode& job, const OperationKey& key,
                                     const Submission& first,
                                     std::shared_ptr<const OperationForm> form)
    : job_(job),
      key_(key),
      form_(std::move(form)),
      signature_(this->form().signature_of(first)),
      name_(this->form().is_merged() ? form_->group->members.front().name : first.name),
      first_rank_(job.local_ranks[first.local_rank]),
      is_coded_(form_ != nullptr && job.ring->nodes > 1 && form_->encodes(first.update)),
      parts_(job.local_ranks.size() * members()),
      updates_(shard() == nullptr ? 0 : members()),
      times_{first.submitted_ns, first.submitted_ns, first.deadline_ns, first.timeout_ms} {}

const OperationForm& GatheredOperation::form() const {
  return form_ == nullptr ? kNotPlanned : *form_;
}

Status GatheredOperation::add(const Submission& submission, const PlannedTensor& planned) {
  const uint32_t rank = job_.local_ranks[submission.local_rank];
  // First: only what has the operation's form has a place in it.
  const Signature said =
      (planned.form == nullptr ? kNotPlanned : *planned.form).signature_of(submission);
  if (said != signature_ || planned.form != form_) {
    return make_status(
        StatusCode::Mismatch,
        "job '{}': ranks disagree about '{}' step {}: rank {} says {}, rank {} says {}", job_.name,
        *submission.name, key_.step, first_rank_, to_string(signature_), rank, to_string(said));
  }
  BRAID_RETURN_IF_ERROR(check_member(submission, planned.member));
  Part& part = parts_[submission.local_rank * members() + planned.member];
  if (part.is_submitted) {
    return make_status(StatusCode::InvalidArgument,
                       "job '{}': rank {} submitted '{}' step {} twice", job_.name, rank,
                       *submission.name, key_.step);
  }
  if (shard() != nullptr) BRAID_RETURN_IF_ERROR(check_update(submission, planned.member));
  part.is_submitted = true;
  part.submitted_ns = submission.submitted_ns;
  part.ticket = submission.ticket;
  part.input = submission.input;
  ++submitted_;
  times_.last_submitted_ns = std::max(times_.last_submitted_ns, submission.submitted_ns);
  if (submission.deadline_ns < times_.deadline_ns) {
    times_.deadline_ns = submission.deadline_ns;
    times_.timeout_ms = submission.timeout_ms;
  }
  if (is_complete() && shard() != nullptr) sign_updates();
  return submission.splits == nullptr ? Status::ok() : add_to_exchange(submission);
}

// For a group the plan says how much of each rank's input is read, not the rank that submits it.
Status GatheredOperation::check_member(const Submission& submission, uint32_t member) const {
  if (!form().is_merged()) return Status::ok();
  const TensorGroup::Member& planned = form_->group->members[member];
  const bool has_input = submission.update.action != UpdateAction::Fetch;
  const uint64_t bytes = has_input ? planned.count * element_bytes(form_->group->dtype) : 0;
  if (planned.tensor == submission.tensor && bytes == submission.input_bytes) return Status::ok();
  return make_status(StatusCode::Mismatch,
                     "job '{}': rank {} submitted {} bytes of '{}' step {}, the plan has '{}' of "
                     "{} bytes in its place",
                     job_.name, job_.local_ranks[submission.local_rank], submission.input_bytes,
                     *submission.name, submission.step, *planned.name, bytes);
}

// Hyper-parameters may differ from tensor to tensor, and not from rank to rank.
Status GatheredOperation::check_update(const Submission& submission, uint32_t member) {
  std::optional<UpdateStep>& known = updates_[member];
  const uint32_t rank = job_.local_ranks[submission.local_rank];
  if (known && *known != submission.update) {
    return make_status(
        StatusCode::Mismatch,
        "job '{}': ranks disagree about '{}' step {}: rank {} says {}, another rank of its node "
        "says {}",
        job_.name, *submission.name, key_.step, rank, to_string(submission.update),
        to_string(*known));
  }
  known = submission.update;
  for (const std::optional<UpdateStep>& other : updates_) {
    if (!other || is_one_round(*other, *known)) continue;
    return make_status(StatusCode::InvalidArgument,
                       "job '{}': rank {} asks for {} of '{}' step {}, and for {} of a tensor that "
                       "is merged with it; all weights of a registration have one action in a step",
                       job_.name, rank, to_string(*known), *submission.name, key_.step,
                       to_string(*other));
  }
  return Status::ok();
}

// What nodes compare.
void GatheredOperation::sign_updates() {
  std::vector<UpdateStep> all;
  for (const std::optional<UpdateStep>& update : updates_) all.push_back(*update);
  signature_.update = all.front();
  signature_.updates = hash_of(all);
}

Status GatheredOperation::add_to_exchange(const Submission& submission) {
  if (exchange_ == nullptr)
    exchange_ = std::make_unique<NodeExchange>(*job_.ring, job_.hash, signature_);
  return splits_disagree(
      job_, *this, exchange_->add(submission.local_rank, submission.splits, submission.input));
}

Status splits_disagree(const JobOnNode& job, const GatheredOperation& submitted,
                       const std::string& disagreement) {
  if (disagreement.empty()) return Status::ok();
  return make_status(StatusCode::Mismatch, "job '{}': ranks disagree about '{}' step {}, {}: {}",
                     job.name, submitted.name(), submitted.key().step,
                     to_string(submitted.signature()), disagreement);
}

bool GatheredOperation::has(uint32_t local_rank) const {
  return std::ranges::all_of(parts_of(local_rank), &Part::is_submitted);
}

std::optional<uint32_t> GatheredOperation::first_without(
    const std::vector<bool>& local_ranks) const {
  for (uint32_t i = 0; i < local_ranks.size(); ++i) {
    if (local_ranks[i] && !has(i)) return i;
  }
  return std::nullopt;
}

OperationInput GatheredOperation::input_of(uint32_t local_rank) const {
  const std::span<const Part> parts = parts_of(local_rank);
  if (parts.size() == 1) return {parts.front().input};
  OperationInput input;
  for (size_t i = 0; i < parts.size(); ++i) {
    input.append(parts[i].input,
                 form_->group->members[i].count * element_bytes(form_->group->dtype));
  }
  return input;
}

bool GatheredOperation::may_use_kept() const {
  const CodedTensors* const codes = coded();
  return (codes == nullptr || codes->memory == nullptr || codes->memory->may_begin(key_.step)) &&
         (shard() == nullptr || shard()->may_begin(key_.step));
}

void GatheredOperation::begin_using_kept() const {
  if (coded() != nullptr && coded()->memory != nullptr) coded()->memory->begin(key_.step);
  if (shard() != nullptr) shard()->begin(key_.step);
}

void GatheredOperation::end_using_kept() const {
  if (coded() != nullptr && coded()->memory != nullptr) coded()->memory->end();
  if (shard() != nullptr) shard()->end();
}

CheckedNumber GatheredOperation::lay_out_results() {
  CheckedNumber bytes = 0;
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    parts_[i].result_start = bytes.value_or(0);
    bytes += checked_round_up(exchange_->result_bytes(i), kResultAlignment);
  }
  return bytes;
}

void GatheredOperation::publish(uint32_t local_rank, uint64_t result_offset, uint64_t result_bytes,
                                ResultSink& sink) const {
  const std::span<const Part> parts = parts_of(local_rank);
  if (shard() != nullptr && signature_.update.action == UpdateAction::Push) {
    for (const Part& part : parts) sink.publish(part.ticket, result_offset, 0);
  } else if (form().is_merged()) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const TensorGroup::Member& member = form_->group->members[i];
      sink.publish(parts[i].ticket, result_offset + member.offset,
                   member.count * element_bytes(form_->group->dtype));
    }
  } else if (exchange_ != nullptr) {
    sink.publish(parts.front().ticket, result_offset + parts.front().result_start,
                 exchange_->result_bytes(local_rank));
  } else if (signature_.collective == Collective::ReduceScatter) {
    const uint64_t block_bytes = result_bytes / job_.ring->world_size;
    const uint64_t block = job_.ring->block_of_rank[job_.local_ranks[local_rank]];
    sink.publish(parts.front().ticket, result_offset + block * block_bytes, block_bytes);
  } else {
    const bool has_data = signature_.collective != Collective::Barrier;
    sink.publish(parts.front().ticket, result_offset, has_data ? result_bytes : 0);
  }
}

void GatheredOperation::release(uint32_t local_rank, uint32_t member) {
  Part& part = parts_[local_rank * members() + member];
  if (!part.is_released) ++released_;
  part.is_released = true;
}

void GatheredOperation::release_all(uint32_t local_rank) {
  for (uint32_t member = 0; member < members(); ++member) release(local_rank, member);
}

std::string GatheredOperation::describe() const {
  const std::string others =
      form().is_merged() ? fmt::format(" and {} more that are merged with it", members() - 1) : "";
  return fmt::format("'{}'{} step {}, {}", *name_, others, key_.step, to_string(signature_));
}

}  // namespace braid
