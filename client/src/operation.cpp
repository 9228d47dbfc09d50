// SPDX-License-Identifier: Apache-2.0
#include "operation.h"

#include <unordered_set>

#include "base/checked.h"
#include "options.h"

namespace braid::client {
namespace {

Error find_tensor(const TensorTable& tensors, uint32_t handle, const Tensor*& tensor) {
  tensor = tensors.find(handle);
  if (tensor == nullptr) {
    return make_error(BRAID_ERROR_NOT_FOUND, "tensor handle ", handle, " is unknown; ",
                      tensors.size(), " tensors are registered");
  }
  return {};
}

Error parse_reduction(uint32_t reduction, Request& request) {
  if (reduction >= kReductionCount) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "reduction is ", reduction,
                      ", which is no braid_reduction (0 to ", kReductionCount - 1, ")");
  }
  request.reduction = static_cast<Reduction>(reduction);
  return {};
}

Error parse_shape(const braid_operation& operation, const Tensor& tensor, Request& request) {
  request.dtype = tensor.dtype;
  request.count = tensor.count;
  if (!tensor.dynamic) return {};
  if (operation.dtype >= kDataTypeCount) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "dtype of the operation on '", tensor.name,
                      "' is ", operation.dtype, ", which is no braid_dtype (0 to ",
                      kDataTypeCount - 1, ")");
  }
  request.dtype = static_cast<DataType>(operation.dtype);
  request.count = operation.count;
  return {};
}

// How much of it is read and written, and whether this rank gives data at all.
Error compute_sizes(const Tensor& tensor, Rank rank, Request& request) {
  const auto one = checked_multiply<uint64_t>(request.count, element_bytes(request.dtype));
  const auto all = one ? checked_multiply<uint64_t>(*one, rank.world_size) : std::nullopt;
  if (!all) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "count of the operation on '", tensor.name,
                      "' is ", request.count, ": its bytes over ", rank.world_size,
                      " ranks do not fit into 64 bits");
  }
  const bool gathers = request.collective == Collective::AllGather;
  const bool scatters = request.collective == Collective::ReduceScatter;
  request.input_bytes = scatters ? *all : *one;
  request.result_bytes = gathers ? *all : *one;
  if (request.collective == Collective::Broadcast && request.root != rank.rank) {
    request.input = nullptr;
    request.input_bytes = 0;
    return {};
  }
  if (request.input_bytes == 0) {
    request.input = nullptr;  // nothing is read; wherever it points, it need not be in the arena
    return {};
  }
  if (request.input == nullptr) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "input of the ", to_string(request.collective),
                      " of '", tensor.name, "' is NULL");
  }
  return {};
}

void parse_common(const braid_operation& operation, uint32_t timeout_ms, Request& request) {
  request.step = operation.step;
  request.timeout_ms = operation.timeout_ms != 0 ? operation.timeout_ms : timeout_ms;
  request.input = operation.input;
}

}  // namespace

Error parse_operation(const braid_operation* operation, const TensorTable& tensors, Rank rank,
                      uint32_t timeout_ms, Request& request) {
  braid_operation given{};
  if (Error error = read_options(operation, "braid_operation", given); !error) return error;
  const Tensor* tensor = nullptr;
  if (Error error = find_tensor(tensors, given.tensor, tensor); !error) return error;
  if (given.collective >= kCollectiveCount) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "collective is ", given.collective,
                      ", which is no braid_collective (0 to ", kCollectiveCount - 1, ")");
  }
  request.collective = static_cast<Collective>(given.collective);
  request.tensors = {given.tensor};
  parse_common(given, timeout_ms, request);
  switch (request.collective) {
    case Collective::Barrier:
      request.input = nullptr;
      return {};
    case Collective::Broadcast:
      if (given.root >= rank.world_size) {
        return make_error(BRAID_ERROR_INVALID_ARGUMENT, "root of the broadcast of '", tensor->name,
                          "' is ", given.root, "; the job has ranks 0 to ", rank.world_size - 1);
      }
      request.root = given.root;
      break;
    case Collective::AllReduce:
    case Collective::ReduceScatter:
      if (Error error = parse_reduction(given.reduction, request); !error) return error;
      break;
    case Collective::AllGather:
      break;
  }
  if (Error error = parse_shape(given, *tensor, request); !error) return error;
  return compute_sizes(*tensor, rank, request);
}

Error parse_bucket(const braid_operation* operation, const uint32_t* handles, size_t handle_count,
                   size_t handle_count_max, const TensorTable& tensors, uint32_t timeout_ms,
                   Request& request) {
  braid_operation given{};
  if (Error error = read_options(operation, "braid_operation", given); !error) return error;
  if (given.collective != BRAID_ALL_REDUCE) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "collective of a bucket is ", given.collective,
                      "; only BRAID_ALL_REDUCE is possible");
  }
  if (handles == nullptr || handle_count == 0 || handle_count > handle_count_max) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "tensors and tensor_count name a bucket of ",
                      handle_count, " tensors; 1 to ", handle_count_max, " are possible");
  }
  if (Error error = parse_reduction(given.reduction, request); !error) return error;
  parse_common(given, timeout_ms, request);
  std::unordered_set<uint32_t> seen;
  for (size_t i = 0; i < handle_count; ++i) {
    const Tensor* tensor = nullptr;
    if (Error error = find_tensor(tensors, handles[i], tensor); !error) return error;
    if (tensor->dynamic) {
      return make_error(BRAID_ERROR_INVALID_ARGUMENT, "tensor '", tensor->name,
                        "' is dynamic; a bucket's tensors need a registered dtype and count");
    }
    if (!seen.insert(handles[i]).second) {
      return make_error(BRAID_ERROR_INVALID_ARGUMENT, "tensor '", tensor->name,
                        "' is in the bucket twice");
    }
    if (i == 0) request.dtype = tensor->dtype;
    if (tensor->dtype != request.dtype) {
      return make_error(BRAID_ERROR_INVALID_ARGUMENT, "tensor '", tensor->name, "' is ",
                        to_string(tensor->dtype), ", the bucket's first is ",
                        to_string(request.dtype), "; a bucket has one dtype");
    }
    const auto count = checked_add<uint64_t>(request.count, tensor->count);
    if (!count || !checked_multiply<uint64_t>(*count, element_bytes(request.dtype))) {
      return make_error(BRAID_ERROR_INVALID_ARGUMENT, "the bucket's bytes do not fit into 64 bits");
    }
    request.count = *count;
    request.tensors.push_back(handles[i]);
  }
  request.input_bytes = request.count * element_bytes(request.dtype);
  request.result_bytes = request.input_bytes;
  if (request.input_bytes == 0) request.input = nullptr;
  if (request.input_bytes != 0 && request.input == nullptr)
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "input of the bucket is NULL");
  return {};
}

std::string describe(const Request& request, const TensorTable& tensors) {
  std::string text = to_string(request.collective);
  const Tensor* first = tensors.find(request.tensors.front());
  text += " of '" + first->name + "'";
  if (request.tensors.size() > 1)
    text += " and " + std::to_string(request.tensors.size() - 1) + " more";
  return text + ", step " + std::to_string(request.step);
}

}  // namespace braid::client
