// SPDX-License-Identifier: Apache-2.0
#include "checks.h"

#include <cstdint>
#include <limits>
#include <string>

#include "calls.h"

namespace fake_nccl {
namespace {

NcclResult is_wrong(const std::string& text) { return refuse(NcclResult::InvalidArgument, text); }

NcclResult check_stream(const Communicator& communicator, CUstream stream) {
  CUcontext context = nullptr;
  if (cuStreamGetCtx(stream, &context) != CUDA_SUCCESS) return is_wrong("there is no such stream");
  if (context != communicator.context) {
    return is_wrong("the stream is not of the communicator's device, " +
                    std::to_string(communicator.device));
  }
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
      status != CU_STREAM_CAPTURE_STATUS_NONE) {
    return refuse(NcclResult::InvalidUsage, "fake NCCL: the stream is being captured");
  }
  return NcclResult::Success;
}

/// `name`: of the argument, as nccl.h has it.
NcclResult check_memory(const Communicator& communicator, const char* name, std::uintptr_t address,
                        std::size_t bytes) {
  if (bytes == 0) return NcclResult::Success;
  int device = -1;
  unsigned type = 0;
  CUdeviceptr begin = 0;
  std::size_t size = 0;
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&device, &type, &begin, &size};
  if (cuPointerGetAttributes(4, attributes, values, address) != CUDA_SUCCESS ||
      type != CU_MEMORYTYPE_DEVICE || device != communicator.device) {
    return is_wrong(std::string(name) + " is not memory of the communicator's device, " +
                    std::to_string(communicator.device));
  }
  if (bytes > begin + size - address) {
    return is_wrong(std::string(name) + " has " + std::to_string(begin + size - address) +
                    " bytes, and " + std::to_string(bytes) + " are needed");
  }
  return NcclResult::Success;
}

/// Memory that input and result share is the same part, or none.
NcclResult check_overlap(std::uintptr_t input, std::size_t input_bytes, std::uintptr_t result,
                         std::size_t result_bytes, std::uintptr_t in_place) {
  const bool overlaps = input < result + result_bytes && result < input + input_bytes;
  return !overlaps || input == in_place ? NcclResult::Success
                                        : is_wrong("sendbuff and recvbuff overlap");
}

NcclResult check_buffers(const Communicator& communicator, const Operation& operation) {
  const auto ranks = static_cast<std::size_t>(communicator.ranks);
  const std::size_t bytes = operation.bytes();
  const Kind kind = operation.signature.kind;
  const std::size_t input_bytes = kind == Kind::kReduceScatter ? bytes * ranks : bytes;
  const std::size_t result_bytes = kind == Kind::kAllGather ? bytes * ranks : bytes;
  const std::size_t own_block = bytes * static_cast<std::size_t>(communicator.rank);
  const bool is_root =
      operation.signature.root < 0 || operation.signature.root == communicator.rank;
  const bool has_input =
      kind == Kind::kPair ? operation.is_send : kind != Kind::kBroadcast || is_root;
  const bool has_result =
      kind == Kind::kPair ? !operation.is_send : kind != Kind::kReduce || is_root;
  if (has_input) {
    const auto result = check_memory(communicator, "sendbuff", operation.input, input_bytes);
    if (result != NcclResult::Success) return result;
  }
  if (has_result) {
    const auto result = check_memory(communicator, "recvbuff", operation.result, result_bytes);
    if (result != NcclResult::Success) return result;
  }
  if (!has_input || !has_result) return NcclResult::Success;
  std::uintptr_t in_place = operation.result;
  if (kind == Kind::kAllGather) in_place = operation.result + own_block;
  if (kind == Kind::kReduceScatter) in_place = operation.result - own_block;
  return check_overlap(operation.input, input_bytes, operation.result, result_bytes, in_place);
}

}  // namespace

NcclResult check_operation(const Communicator& communicator, const Operation& operation,
                           CUstream stream) {
  const Signature& signature = operation.signature;
  const std::size_t size = bytes_of(signature.type);
  if (size == 0) return is_wrong("there is no such datatype");
  if (name_of(signature.reduction) == nullptr) return is_wrong("there is no such op");
  const int named = signature.kind == Kind::kPair ? operation.peer : signature.root;
  const bool names_rank = signature.kind == Kind::kPair || signature.kind == Kind::kReduce ||
                          signature.kind == Kind::kBroadcast;
  if (names_rank && (named < 0 || named >= communicator.ranks)) {
    return is_wrong("there is no rank " + std::to_string(named) + " among " +
                    std::to_string(communicator.ranks));
  }
  if (signature.count > std::numeric_limits<std::size_t>::max() / size / kMostRanks) {
    return is_wrong("count is too large");
  }
  if (const auto result = check_stream(communicator, stream); result != NcclResult::Success) {
    return result;
  }
  return check_buffers(communicator, operation);
}

}  // namespace fake_nccl
