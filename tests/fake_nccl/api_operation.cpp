// SPDX-License-Identifier: Apache-2.0
// Groups and what is queued on streams.
#include <atomic>

#include "api.h"
#include "calls.h"
#include "checks.h"
#include "communicator.h"
#include "group.h"
#include "transfer.h"

namespace fake_nccl {
namespace {

std::atomic<std::uint64_t> last_number = 0;

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

NcclResult call(Function function, Operation operation, NcclComm comm, CUstream stream) {
  if (const auto failure = count_call(function)) return fail_group(*failure);
  const CommunicatorPointer communicator = communicator_of(comm);
  if (communicator == nullptr) {
    return fail_group(
        refuse(NcclResult::InvalidArgument, "there is no such communicator, or not any more"));
  }
  const NcclResult checked = check_operation(*communicator, operation, stream);
  if (checked != NcclResult::Success) return fail_group(checked);
  operation.number = ++last_number;
  return queue(communicator, operation, stream);
}

Operation collective(Kind kind, const void* input, void* result, std::size_t count, NcclType type,
                     NcclReduction reduction = NcclReduction::Sum, int root = -1) {
  return {{kind, type, reduction, root, count}, address(input), address(result), false, 0, 0};
}

}  // namespace

std::uint64_t operations() { return last_number; }

extern "C" {

NcclResult ncclGroupStart() {
  if (const auto failure = count_call(Function::kGroupStart)) return *failure;
  begin_group();
  return NcclResult::Success;
}

NcclResult ncclGroupEnd() {
  if (const auto failure = count_call(Function::kGroupEnd)) fail_group(*failure);
  return end_group();
}

NcclResult ncclAllReduce(const void* input, void* result, std::size_t count, NcclType type,
                         NcclReduction reduction, NcclComm comm, CUstream stream) {
  return call(Function::kAllReduce,
              collective(Kind::kAllReduce, input, result, count, type, reduction), comm, stream);
}

NcclResult ncclReduceScatter(const void* input, void* result, std::size_t count, NcclType type,
                             NcclReduction reduction, NcclComm comm, CUstream stream) {
  return call(Function::kReduceScatter,
              collective(Kind::kReduceScatter, input, result, count, type, reduction), comm,
              stream);
}

NcclResult ncclAllGather(const void* input, void* result, std::size_t count, NcclType type,
                         NcclComm comm, CUstream stream) {
  return call(Function::kAllGather, collective(Kind::kAllGather, input, result, count, type), comm,
              stream);
}

NcclResult ncclReduce(const void* input, void* result, std::size_t count, NcclType type,
                      NcclReduction reduction, int root, NcclComm comm, CUstream stream) {
  return call(Function::kReduce,
              collective(Kind::kReduce, input, result, count, type, reduction, root), comm, stream);
}

NcclResult ncclBroadcast(const void* input, void* result, std::size_t count, NcclType type,
                         int root, NcclComm comm, CUstream stream) {
  return call(Function::kBroadcast,
              collective(Kind::kBroadcast, input, result, count, type, NcclReduction::Sum, root),
              comm, stream);
}

NcclResult ncclSend(const void* input, std::size_t count, NcclType type, int peer, NcclComm comm,
                    CUstream stream) {
  Operation operation = collective(Kind::kPair, input, nullptr, count, type);
  operation.is_send = true;
  operation.peer = peer;
  return call(Function::kSend, operation, comm, stream);
}

NcclResult ncclRecv(void* result, std::size_t count, NcclType type, int peer, NcclComm comm,
                    CUstream stream) {
  Operation operation = collective(Kind::kPair, nullptr, result, count, type);
  operation.peer = peer;
  return call(Function::kRecv, operation, comm, stream);
}

}  // extern "C"
}  // namespace fake_nccl
