// SPDX-License-Identifier: Apache-2.0
#include "job/trainer_submissions.h"

#include "job/job.h"
#include "job/submitted_message.h"
#include "job/submitted_operation.h"

namespace braid {

Status TrainerSubmissions::take(const proto::SubmitEntry& entry) {
  switch (static_cast<proto::SubmitKind>(entry.kind)) {
    case proto::SubmitKind::Operation:
      return take_operation(entry);
    case proto::SubmitKind::Release:
      return release(entry);
    case proto::SubmitKind::Send:
    case proto::SubmitKind::Receive:
      return take_message(entry);
  }
  return Status::ok();  // the ring has no others, see check_submit_entry
}

Status TrainerSubmissions::release(const proto::SubmitEntry& entry) {
  const auto submitted = tickets_.give_back(entry.ticket);
  if (!submitted) return submitted.status();
  if (submitted->is_message) {
    job_->check(job_->messages().release(local_rank_, entry.ticket));
    return Status::ok();
  }
  tensors_.let_go(submitted->tensor);
  job_->check(job_->operation_table().release(local_rank_, submitted->key));
  return Status::ok();
}

Status TrainerSubmissions::take_operation(const proto::SubmitEntry& entry) {
  Tensor* tensor = tensors_.find(entry.tensor);
  if (tensor == nullptr) {
    return make_status(StatusCode::NotFound, "submitted tensor {}, which it has not registered",
                       entry.tensor);
  }
  if (tensor->last_step && entry.step <= *tensor->last_step) {
    return make_status(StatusCode::InvalidArgument,
                       "submitted '{}' step {} after step {}: steps of a tensor must grow",
                       *tensor->name, entry.step, *tensor->last_step);
  }
  tensor->last_step = entry.step;

  Submission submission;
  submission.local_rank = local_rank_;
  submission.ticket = entry.ticket;
  submission.tensor = tensor->hash;
  submission.step = entry.step;
  submission.name = tensor->name;
  submission.timeout_ms = entry.timeout_ms != 0 ? entry.timeout_ms : timeout_ms_;

  const SubmittedOperation::Trainer trainer{request_.rank, request_.world_size, arenas_, buffers_};
  BRAID_RETURN_IF_ERROR(SubmittedOperation(trainer, entry, *tensor).read(submission));
  const OperationKey key{job_->key(), submission.tensor, submission.step};
  BRAID_RETURN_IF_ERROR(tickets_.hold(entry.ticket, {key, entry.tensor, false}));
  tensors_.hold(entry.tensor);
  last_name_ = tensor->name;
  last_step_ = entry.step;
  job_->on_submit(std::move(submission), tensor->plan_set);
  return Status::ok();
}

Status TrainerSubmissions::take_message(const proto::SubmitEntry& entry) {
  auto end = read_message(entry, request_.rank, request_.world_size, arenas_);
  if (!end) return end.status();
  end->local_rank = local_rank_;
  if (end->timeout_ms == 0) end->timeout_ms = timeout_ms_;
  BRAID_RETURN_IF_ERROR(tickets_.hold(entry.ticket, {{}, 0, true}));
  job_->on_message_end(*end, static_cast<proto::SubmitKind>(entry.kind));
  return Status::ok();
}

std::string TrainerSubmissions::last_operation() const {
  return last_name_ == nullptr ? std::string()
                               : fmt::format("'{}' step {}", *last_name_, last_step_);
}

}  // namespace braid
