// SPDX-License-Identifier: Apache-2.0
#include "group.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "calls.h"
#include "kernel.h"

namespace fake_nccl {
namespace {

/// What a group has for one communicator.
struct Share {
  CommunicatorPointer communicator;
  CUstream stream;
  std::vector<Operation> operations;
};

struct Group {
  int depth = 0;
  NcclResult failure = NcclResult::Success;
  std::vector<Share> shares;
};

thread_local Group group;

NcclResult launch_share(Share& share) {
  const CurrentContext context(*share.communicator);
  CUresult result = context.result();
  if (result == CUDA_SUCCESS) {
    result = launch(share.communicator, std::move(share.operations), share.stream);
  }
  if (result == CUDA_SUCCESS) {
    result = cuEventRecord(share.communicator->last_kernel, share.stream);
  }
  if (result == CUDA_SUCCESS) return NcclResult::Success;
  return refuse(NcclResult::UnhandledCudaError,
                "a kernel was not queued: CUDA says " + std::to_string(static_cast<int>(result)));
}

}  // namespace

void begin_group() { ++group.depth; }

bool is_in_group() { return group.depth > 0; }

NcclResult fail_group(NcclResult result) {
  if (is_in_group() && group.failure == NcclResult::Success) group.failure = result;
  return result;
}

NcclResult end_group() {
  if (group.depth == 0) {
    return refuse(NcclResult::InvalidUsage, "ncclGroupEnd: not in a group call.");
  }
  if (--group.depth > 0) return NcclResult::Success;
  std::vector<Share> shares = std::exchange(group.shares, {});
  NcclResult result = std::exchange(group.failure, NcclResult::Success);
  for (Share& share : shares) {
    if (result == NcclResult::Success) result = launch_share(share);
  }
  return result;
}

NcclResult queue(const CommunicatorPointer& communicator, const Operation& operation,
                 CUstream stream) {
  begin_group();
  auto share = std::ranges::find(group.shares, communicator, &Share::communicator);
  if (share == group.shares.end()) {
    group.shares.push_back({communicator, stream, {}});
    share = std::prev(group.shares.end());
  }
  if (share->stream != stream) {
    fail_group(refuse(NcclResult::InvalidUsage,
                      "fake NCCL: the operations of a group have one stream per communicator"));
  }
  share->operations.push_back(operation);
  const NcclResult failure = group.failure;
  const NcclResult result = end_group();
  return result == NcclResult::Success ? failure : result;
}

}  // namespace fake_nccl
