// SPDX-License-Identifier: Apache-2.0
#include "job/submitted_operation.h"

#include "base/checked.h"
#include "job/submitted_splits.h"
#include "job/submitted_update.h"

namespace braid {
namespace {

// Bytes that the trainer's input must hold; nothing if what it gives or gets is beyond
// kTensorBytesMax. For an exchange the splits say so.
std::optional<uint64_t> checked_input_bytes(const Signature& signature, uint32_t world_size) {
  const CheckedNumber bytes = CheckedNumber(signature.count) * element_bytes(signature.dtype);
  const bool is_in_blocks = signature.collective == Collective::AllGather ||
                            signature.collective == Collective::ReduceScatter;
  const CheckedNumber all = bytes * (is_in_blocks ? world_size : 1U);
  if (!all.is_at_most(kTensorBytesMax)) return std::nullopt;
  return (signature.collective == Collective::ReduceScatter ? all : bytes).value();
}

// Whether an operation that is no exchange has an input.
bool has_input(const Submission& submission, uint32_t rank) {
  const Signature& signature = submission.signature;
  return signature.collective != Collective::Barrier &&
         (signature.collective != Collective::Broadcast || signature.root == rank) &&
         submission.update.action != UpdateAction::Fetch;
}

}  // namespace

Status SubmittedOperation::read(Submission& submission) const {
  if (trainer_.arenas.find(entry_.arena) == nullptr) {
    return make_status(StatusCode::NotFound,
                       "submitted '{}' step {} in arena {}; it has registered {}, counted from 0 "
                       "(RegisterMemory)",
                       *tensor_.name, entry_.step, entry_.arena, trainer_.arenas.all()->size());
  }
  BRAID_RETURN_IF_ERROR(sign(submission));
  BRAID_RETURN_IF_ERROR(find_update(submission));
  return find_input(submission);
}

Status SubmittedOperation::sign(Submission& submission) const {
  Signature& signature = submission.signature;
  signature.collective = static_cast<Collective>(entry_.collective);
  if (signature.collective != Collective::Barrier) {
    signature.dtype = tensor_.is_dynamic ? static_cast<DataType>(entry_.dtype) : tensor_.dtype;
    signature.count = tensor_.is_dynamic ? entry_.count : tensor_.count;
  }
  if (signature.collective == Collective::AllReduce ||
      signature.collective == Collective::ReduceScatter) {
    signature.reduction = static_cast<Reduction>(entry_.reduction);
  }
  if (has_root(signature.collective)) signature.root = entry_.root;
  if (signature.root >= trainer_.world_size) {
    return make_status(StatusCode::InvalidArgument, "'{}' step {}: root {} is no rank below {}",
                       *tensor_.name, entry_.step, signature.root, trainer_.world_size);
  }
  const auto bytes = checked_input_bytes(signature, trainer_.world_size);
  if (!bytes) {
    return make_status(StatusCode::InvalidArgument,
                       "'{}' step {}: {} is too large: a rank gives and gets {} bytes at most",
                       *tensor_.name, entry_.step, to_string(signature), kTensorBytesMax);
  }
  submission.input_bytes = *bytes;
  if (signature.collective == Collective::AllToAll) signature.count = 0;  // the splits count
  return Status::ok();
}

Status SubmittedOperation::find_update(Submission& submission) const {
  Signature& signature = submission.signature;
  if (tensor_.state_slots == 0) {
    if (signature.collective == Collective::AllToAll || entry_.table == 0) return Status::ok();
    return make_status(StatusCode::InvalidArgument,
                       "'{}' step {} asks for an update; the tensor was registered without state "
                       "slots",
                       *tensor_.name, entry_.step);
  }
  const SharedMemory& arena = *trainer_.arenas.find(entry_.arena);
  BRAID_RETURN_IF_ERROR(
      trainer_.arenas.count_missing_pages(entry_.arena, entry_.table, sizeof(proto::UpdateEntry)));
  auto update = submitted_update(tensor_, signature, arena, entry_.table);
  if (!update) {
    return update.status().with_context(fmt::format("'{}' step {}", *tensor_.name, entry_.step));
  }
  submission.update = *update;
  signature.owner_step = OwnerStepKind::Optimizer;
  return Status::ok();
}

Status SubmittedOperation::find_input(Submission& submission) const {
  const Signature& signature = submission.signature;
  const SharedMemory& arena = *trainer_.arenas.find(entry_.arena);
  uint64_t& bytes = submission.input_bytes;
  if (is_exchange(signature.collective)) {
    if (signature.collective == Collective::AllToAll) {
      BRAID_RETURN_IF_ERROR(trainer_.arenas.count_missing_pages(
          entry_.arena, entry_.table, 2 * sizeof(uint64_t) * uint64_t{trainer_.world_size}));
    }
    auto splits = submitted_splits(signature, trainer_.rank, trainer_.world_size, arena,
                                   entry_.table, trainer_.buffers.another());
    if (!splits) {
      return splits.status().with_context(fmt::format("'{}' step {}", *tensor_.name, entry_.step));
    }
    bytes = input_bytes_of(**splits, signature.dtype);
    submission.splits = std::move(*splits);
  } else if (!has_input(submission, trainer_.rank)) {
    bytes = 0;
  }
  submission.input = arena.data();
  if (bytes == 0) return Status::ok();
  if (!range_fits(entry_.offset, bytes, arena.size()) ||
      entry_.offset % element_bytes(signature.dtype) != 0) {
    return make_status(StatusCode::InvalidArgument,
                       "'{}' step {}: an input of {} bytes at {} is not inside the arena of {} "
                       "bytes, or not aligned",
                       *tensor_.name, entry_.step, bytes, entry_.offset, arena.size());
  }
  submission.input += entry_.offset;
  Status counted = trainer_.arenas.count_missing_pages(entry_.arena, entry_.offset, bytes);
  if (counted) return counted;
  return counted.with_context(fmt::format("'{}' step {}", *tensor_.name, entry_.step));
}

}  // namespace braid
