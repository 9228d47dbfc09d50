// SPDX-License-Identifier: Apache-2.0
#include "device/device_request.h"

#include <utility>

#include "connection.h"
#include "options.h"

namespace braid::client {
namespace {

Status check_buffers(const braid_operation& operation, const braid_device_buffers& buffers,
                     bool is_dynamic) {
  if (operation.input != nullptr) {
    return Status(StatusCode::InvalidArgument,
                  "input of the operation is not NULL: device memory is named in "
                  "braid_device_buffers alone");
  }
  if ((buffers.flags & ~BRAID_DEVICE_STREAM_WAITS) != 0) {
    return make_status(StatusCode::InvalidArgument,
                       "flags of braid_device_buffers are {:#x}; this libbraid ({}) knows {:#x}",
                       buffers.flags, BRAID_VERSION, BRAID_DEVICE_STREAM_WAITS);
  }
  if (buffers.flags != 0 && !is_dynamic) {
    return Status(StatusCode::InvalidArgument,
                  "BRAID_DEVICE_STREAM_WAITS is given for a tensor that is not dynamic: results of "
                  "others are taken by a thread");
  }
  if (buffers.result_of_rank != nullptr && operation.collective != BRAID_ALL_GATHER) {
    return Status(StatusCode::InvalidArgument,
                  "result_of_rank is given for what is not an all-gather: use result");
  }
  return {};
}

Status copy_results(const braid_device_buffers& buffers, Rank rank, DeviceRequest& request) {
  request.result = buffers.result;
  if (buffers.result_of_rank == nullptr) return {};
  request.result = 0;
  request.result_of_rank.assign(buffers.result_of_rank, buffers.result_of_rank + rank.world_size);
  for (uint32_t i = 0; i < rank.world_size; ++i) {
    if (request.result_of_rank[i] != 0) continue;
    return make_status(StatusCode::InvalidArgument, "result_of_rank has no memory for rank {}", i);
  }
  return {};
}

// What the struct points to, which is the caller's.
Status copy_pointed(const braid_operation& operation, const Request& parsed,
                    DeviceRequest& request) {
  request.operation = operation;
  request.operation.input = nullptr;
  request.operation.update = nullptr;
  request.operation.input_splits = request.operation.output_splits = nullptr;
  if (operation.input_splits != nullptr) request.splits = parsed.table;
  if (operation.update == nullptr) return {};
  return read_options(operation.update, "braid_update", request.update.emplace());
}

}  // namespace

Status read_device_request(const braid_operation* operation, const braid_device_buffers* buffers,
                           const TensorTable& tensors, Rank rank, const Timeouts& timeouts,
                           const NextSteps& next_steps, std::optional<DeviceRequest>& request) {
  braid_operation asked{};
  braid_device_buffers given{};
  BRAID_RETURN_IF_ERROR(read_options(operation, "braid_operation", asked));
  BRAID_RETURN_IF_ERROR(read_options(buffers, "braid_device_buffers", given));
  const Tensor* tensor = tensors.find(asked.tensor);
  const bool is_dynamic = tensor != nullptr && tensor->dynamic;
  BRAID_RETURN_IF_ERROR(check_buffers(asked, given, is_dynamic));
  if (is_dynamic) {
    const auto next = next_steps.find(asked.tensor);
    asked.step = next == next_steps.end() ? 0 : next->second;
  }
  // For parse_operation: there is one. It is not read.
  asked.input = given.input != 0 ? &given : nullptr;
  asked.struct_size = sizeof(asked);
  Request parsed;
  BRAID_RETURN_IF_ERROR(parse_operation(&asked, tensors, rank, timeouts, parsed));
  const bool has_splits =
      parsed.collective == Collective::AllToAll && asked.input_splits != nullptr;
  if (given.result == 0 && given.result_of_rank == nullptr) parsed.result_bytes = 0;
  request.emplace(Pieces(parsed, rank, has_splits, is_dynamic));
  request->is_dynamic = is_dynamic;
  request->input = parsed.input_bytes == 0 ? 0 : given.input;
  request->stream = static_cast<CUstream>(given.stream);
  request->stream_waits = (given.flags & BRAID_DEVICE_STREAM_WAITS) != 0;
  request->deadline_ns = now_ns() + parsed.timeout_ms * 1'000'000ull;
  request->text = describe(parsed, tensors);
  BRAID_RETURN_IF_ERROR(copy_results(given, rank, *request));
  return copy_pointed(asked, parsed, *request);
}

}  // namespace braid::client
