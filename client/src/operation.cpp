// SPDX-License-Identifier: Apache-2.0
#include "operation.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "options.h"
#include "update/update_step.h"

namespace braid::client {
namespace {

Status find_tensor(const TensorTable& tensors, uint32_t handle, const Tensor*& tensor) {
  tensor = tensors.find(handle);
  if (tensor == nullptr) {
    return make_status(StatusCode::NotFound,
                       "tensor handle {} is unknown; {} tensors are registered", handle,
                       tensors.size());
  }
  return {};
}

Status parse_reduction(uint32_t reduction, Request& request) {
  if (reduction >= kReductionCount) {
    return make_status(StatusCode::InvalidArgument,
                       "reduction is {}, which is no braid_reduction (0 to {})", reduction,
                       kReductionCount - 1);
  }
  request.reduction = static_cast<Reduction>(reduction);
  return {};
}

Status parse_shape(const braid_operation& operation, const Tensor& tensor, Request& request) {
  request.dtype = tensor.dtype;
  request.count = tensor.count;
  if (!tensor.dynamic) return {};
  if (operation.dtype >= kDataTypeCount) {
    return make_status(StatusCode::InvalidArgument,
                       "dtype of the operation on '{}' is {}, which is no braid_dtype (0 to {})",
                       tensor.name, operation.dtype, kDataTypeCount - 1);
  }
  request.dtype = static_cast<DataType>(operation.dtype);
  request.count = operation.count;
  return {};
}

// Takes the caller's, or as many to and from every rank.
Status parse_splits(const braid_operation& operation, const Tensor& tensor, uint32_t world_size,
                    Request& request) {
  const bool has_input = operation.input_splits != nullptr;
  if (has_input != (operation.output_splits != nullptr)) {
    return make_status(StatusCode::InvalidArgument,
                       "the all-to-all of '{}' has {}_splits only; give both, or none where all "
                       "parts have count elements",
                       tensor.name, has_input ? "input" : "output");
  }
  request.table.assign(2 * size_t{world_size}, request.count);
  if (!has_input) return {};
  std::copy_n(operation.input_splits, world_size, request.table.begin());
  std::copy_n(operation.output_splits, world_size, request.table.begin() + world_size);
  request.count = 0;
  return {};
}

Status add_up_splits(const Tensor& tensor, uint32_t world_size, Request& request) {
  for (const bool is_input : {true, false}) {
    CheckedNumber elements = 0;
    for (uint32_t rank = 0; rank < world_size; ++rank)
      elements += request.table[(is_input ? 0 : world_size) + rank];
    const CheckedNumber bytes = elements * element_bytes(request.dtype);
    if (!bytes.is_at_most(kTensorBytesMax)) {
      return make_status(StatusCode::InvalidArgument,
                         "{}_splits of the all-to-all of '{}' have more than {} bytes",
                         is_input ? "input" : "output", tensor.name, kTensorBytesMax);
    }
    (is_input ? request.input_bytes : request.result_bytes) = *bytes.value();
  }
  return {};
}

// How much of it is read and written, and whether this rank gives data at all.
// Whether a rank gives or gets as many blocks as there are ranks.
bool is_in_blocks(Collective collective) {
  return collective == Collective::AllGather || collective == Collective::ReduceScatter ||
         collective == Collective::Gather || collective == Collective::Scatter;
}

Status compute_sizes(const Tensor& tensor, Rank rank, Request& request) {
  const auto one = (CheckedNumber(request.count) * element_bytes(request.dtype)).value();
  const auto all = (CheckedNumber(request.count) * element_bytes(request.dtype) *
                    (is_in_blocks(request.collective) ? rank.world_size : 1U))
                       .value();
  if (!all || *all > kTensorBytesMax) {
    return make_status(
        StatusCode::InvalidArgument,
        "count of the operation on '{}' is {}: a rank gives and gets {} bytes at most", tensor.name,
        request.count, kTensorBytesMax);
  }
  const bool is_root = request.root == rank.rank;
  request.input_bytes = *one;
  request.result_bytes = *one;
  switch (request.collective) {
    case Collective::AllReduce:
    case Collective::Barrier:
      break;
    case Collective::Broadcast:
      if (!is_root) request.input_bytes = 0;
      break;
    case Collective::AllGather:
      request.result_bytes = *all;
      break;
    case Collective::ReduceScatter:
      request.input_bytes = *all;
      break;
    case Collective::Gather:
      request.result_bytes = is_root ? *all : 0;
      break;
    case Collective::Scatter:
      request.input_bytes = is_root ? *all : 0;
      break;
    case Collective::AllToAll:
      BRAID_RETURN_IF_ERROR(add_up_splits(tensor, rank.world_size, request));
      break;
  }
  if (request.input_bytes == 0) {
    request.input = nullptr;  // nothing is read; wherever it points, it need not be in the arena
    return {};
  }
  if (request.input == nullptr) {
    return make_status(StatusCode::InvalidArgument, "input of the {} of '{}' is NULL",
                       to_string(request.collective), tensor.name);
  }
  return {};
}

Status parse_update_of(const braid_operation& operation, const Tensor& tensor, Request& request,
                       UpdateStep& step) {
  braid_update given{};
  BRAID_RETURN_IF_ERROR(read_options(operation.update, "braid_update", given));
  const auto narrow = [](uint32_t value) {
    return static_cast<uint8_t>(std::min<uint32_t>(value, UINT8_MAX));
  };
  const proto::UpdateEntry entry = {narrow(given.action), narrow(given.optimizer),
                                    narrow(given.slot),   narrow(given.bits),
                                    given.flags,          given.count,
                                    given.learning_rate,  given.momentum,
                                    given.dampening,      given.second_momentum,
                                    given.epsilon,        given.weight_decay};
  const auto parsed = parse_update(entry, request.dtype, tensor.state_slots);
  if (!parsed) {
    return parsed.status().with_context(
        fmt::format("update of '{}', step {}", tensor.name, request.step));
  }
  step = *parsed;
  request.table.resize(sizeof(entry) / sizeof(uint64_t));
  std::memcpy(request.table.data(), &entry, sizeof(entry));
  return {};
}

// Who pushes gets nothing, who fetches gives nothing.
Status compute_update_sizes(const braid_operation& operation, const Tensor& tensor, Rank rank,
                            Request& request) {
  UpdateStep step;
  BRAID_RETURN_IF_ERROR(parse_update_of(operation, tensor, request, step));
  if (step.action == UpdateAction::Fetch) request.input = &step;  // any: nothing is read
  BRAID_RETURN_IF_ERROR(compute_sizes(tensor, rank, request));
  if (step.action == UpdateAction::Push) request.result_bytes = 0;
  if (step.action == UpdateAction::Fetch) {
    request.input = nullptr;
    request.input_bytes = 0;
  }
  return {};
}

// Tensors with state are updated, others are not.
Status check_update(const braid_operation& operation, const Tensor& tensor,
                    const Request& request) {
  const bool has_update = operation.update != nullptr;
  if (has_update && tensor.state_slots == 0) {
    return make_status(StatusCode::InvalidArgument,
                       "update of '{}' is given; the tensor was registered without state_slots",
                       tensor.name);
  }
  if (!has_update && tensor.state_slots != 0) {
    return make_status(StatusCode::InvalidArgument,
                       "update of '{}' is NULL; the tensor was registered with state_slots, and "
                       "each of its operations says what to do",
                       tensor.name);
  }
  if (!has_update ||
      (request.collective == Collective::AllReduce &&
       (request.reduction == Reduction::Sum || request.reduction == Reduction::Average)))
    return {};
  return make_status(StatusCode::InvalidArgument,
                     "'{}' has state_slots; its operations are all-reduces with BRAID_SUM or "
                     "BRAID_AVERAGE",
                     tensor.name);
}

Status parse_common(const braid_operation& operation, const Timeouts& timeouts, Request& request) {
  if (operation.step > kStepNumberMax) {
    return make_status(StatusCode::InvalidArgument, "step is {}; right are 0 to {}", operation.step,
                       kStepNumberMax);
  }
  request.step = operation.step;
  request.timeout_ms = timeouts.of_operation_ms(operation.timeout_ms);
  request.extension_ms = timeouts.extension_ms();
  request.input = operation.input;
  return {};
}

}  // namespace

Status parse_operation(const braid_operation* operation, const TensorTable& tensors, Rank rank,
                       const Timeouts& timeouts, Request& request) {
  braid_operation given{};
  BRAID_RETURN_IF_ERROR(read_options(operation, "braid_operation", given));
  const Tensor* tensor = nullptr;
  BRAID_RETURN_IF_ERROR(find_tensor(tensors, given.tensor, tensor));
  if (given.collective >= kCollectiveCount) {
    return make_status(StatusCode::InvalidArgument,
                       "collective is {}, which is no braid_collective (0 to {})", given.collective,
                       kCollectiveCount - 1);
  }
  request.collective = static_cast<Collective>(given.collective);
  request.tensor = given.tensor;
  BRAID_RETURN_IF_ERROR(parse_common(given, timeouts, request));
  switch (request.collective) {
    case Collective::Barrier:
      request.input = nullptr;
      return {};
    case Collective::Broadcast:
    case Collective::Gather:
    case Collective::Scatter:
      if (given.root >= rank.world_size) {
        return make_status(
            StatusCode::InvalidArgument, "root of the {} of '{}' is {}; the job has ranks 0 to {}",
            to_string(request.collective), tensor->name, given.root, rank.world_size - 1);
      }
      request.root = given.root;
      break;
    case Collective::AllReduce:
    case Collective::ReduceScatter:
      BRAID_RETURN_IF_ERROR(parse_reduction(given.reduction, request));
      break;
    case Collective::AllGather:
    case Collective::AllToAll:
      break;
  }
  BRAID_RETURN_IF_ERROR(parse_shape(given, *tensor, request));
  BRAID_RETURN_IF_ERROR(check_update(given, *tensor, request));
  if (given.update != nullptr) return compute_update_sizes(given, *tensor, rank, request);
  if (request.collective == Collective::AllToAll)
    BRAID_RETURN_IF_ERROR(parse_splits(given, *tensor, rank.world_size, request));
  return compute_sizes(*tensor, rank, request);
}

Status parse_message(const braid_message* message, proto::SubmitKind kind, Rank rank,
                     const Timeouts& timeouts, Request& request) {
  braid_message given{};
  BRAID_RETURN_IF_ERROR(read_options(message, "braid_message", given));
  const bool is_send = kind == proto::SubmitKind::Send;
  const bool is_from_any = !is_send && given.peer == BRAID_ANY_RANK;
  if (!is_from_any && (given.peer >= rank.world_size || given.peer == rank.rank)) {
    return make_status(StatusCode::InvalidArgument,
                       "peer of the {} is {}; the job has ranks 0 to {}, and this one is {}",
                       is_send ? "send" : "receive", given.peer, rank.world_size - 1, rank.rank);
  }
  if (given.tag > kStepNumberMax) {
    return make_status(StatusCode::InvalidArgument, "tag is {}; right are 0 to {}", given.tag,
                       kStepNumberMax);
  }
  if (given.bytes > kTensorBytesMax) {
    return make_status(StatusCode::InvalidArgument, "bytes of the message are {}; {} are the most",
                       given.bytes, kTensorBytesMax);
  }
  if (is_send && given.bytes != 0 && given.data == nullptr)
    return Status(StatusCode::InvalidArgument, "data of the send is NULL");
  request.kind = kind;
  request.dtype = DataType::Uint8;
  request.root = given.peer;
  request.step = given.tag;
  request.count = given.bytes;
  request.timeout_ms = timeouts.of_operation_ms(given.timeout_ms);
  request.extension_ms = timeouts.extension_ms();
  if (is_send && given.bytes != 0) request.input = given.data;
  (is_send ? request.input_bytes : request.result_bytes) = given.bytes;
  return {};
}

std::string describe(const Request& request, const TensorTable& tensors) {
  if (request.is_message()) {
    const bool is_send = request.kind == proto::SubmitKind::Send;
    const std::string peer =
        request.root == BRAID_ANY_RANK ? "any rank" : fmt::format("rank {}", request.root);
    return fmt::format("{} of {} bytes {} {}, tag {}", is_send ? "send" : "receive", request.count,
                       is_send ? "to" : "from", peer, request.step);
  }
  return fmt::format("{} of '{}', step {}", to_string(request.collective),
                     tensors.find(request.tensor)->name, request.step);
}

}  // namespace braid::client
