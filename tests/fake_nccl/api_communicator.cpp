// SPDX-License-Identifier: Apache-2.0
// Versions, errors, communicators.
#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include <unistd.h>

#include "api.h"
#include "calls.h"
#include "communicator.h"
#include "fake_nccl.h"
#include "group.h"
#include "kernel.h"
#include "settings.h"

namespace fake_nccl {
namespace {

NcclResult cuda_failed(const char* call, CUresult result) {
  return refuse(NcclResult::UnhandledCudaError, std::string("Cuda failure: ") + call + " says " +
                                                    std::to_string(static_cast<int>(result)));
}

NcclResult is_no_communicator() {
  return refuse(NcclResult::InvalidArgument, "there is no such communicator, or not any more");
}

NcclResult init(NcclComm& handle, int ranks, const NcclUniqueId& id, int rank) {
  if (is_in_group()) {
    return refuse(NcclResult::InvalidUsage, "fake NCCL: ncclCommInitRank has no groups");
  }
  if (ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks) {
    return refuse(NcclResult::InvalidArgument,
                  "there is no rank " + std::to_string(rank) + " among " + std::to_string(ranks));
  }
  auto communicator = std::make_shared<Communicator>();
  communicator->rank = rank;
  communicator->ranks = ranks;
  if (const CUresult result = cuCtxGetCurrent(&communicator->context); result != CUDA_SUCCESS) {
    return cuda_failed("cuCtxGetCurrent", result);
  }
  CUdevice device = 0;
  if (const CUresult result = cuCtxGetDevice(&device); result != CUDA_SUCCESS) {
    return cuda_failed("cuCtxGetDevice", result);
  }
  communicator->device = device;
  while (settings().init_hangs) pause();
  const auto met = communicator->meeting.meet(id, ranks, rank, device, settings().version,
                                              std::chrono::seconds(settings().init_seconds));
  if (met != NcclResult::Success) return met;
  const CUresult result = cuEventCreate(&communicator->last_kernel, CU_EVENT_DISABLE_TIMING);
  if (result != CUDA_SUCCESS) return cuda_failed("cuEventCreate", result);
  handle = add_communicator(std::move(communicator));
  return NcclResult::Success;
}

/// The handle is gone already.
NcclResult end_communicator(const Communicator& communicator, bool waits) {
  const CurrentContext context(communicator);
  if (context.result() != CUDA_SUCCESS) return cuda_failed("cuCtxPushCurrent", context.result());
  const CUresult waited = waits ? cuEventSynchronize(communicator.last_kernel) : CUDA_SUCCESS;
  (void)cuEventDestroy(communicator.last_kernel);
  return waited == CUDA_SUCCESS ? NcclResult::Success : cuda_failed("cuEventSynchronize", waited);
}

}  // namespace

extern "C" {

NcclResult ncclGetVersion(int* version) {
  if (const auto failure = count_call(Function::kGetVersion)) return *failure;
  if (version == nullptr) return refuse(NcclResult::InvalidArgument, "version is NULL");
  *version = settings().version;
  return NcclResult::Success;
}

NcclResult ncclGetUniqueId(NcclUniqueId* id) {
  if (const auto failure = count_call(Function::kGetUniqueId)) return *failure;
  if (id == nullptr) return refuse(NcclResult::InvalidArgument, "uniqueId is NULL");
  return Meeting::make_id(*id);
}

NcclResult ncclCommInitRank(NcclComm* comm, int ranks, NcclUniqueId id, int rank) {
  if (const auto failure = count_call(Function::kCommInitRank)) return *failure;
  if (comm == nullptr) return refuse(NcclResult::InvalidArgument, "comm is NULL");
  *comm = nullptr;
  return init(*comm, ranks, id, rank);
}

NcclResult ncclCommDestroy(NcclComm comm) {
  if (const auto failure = count_call(Function::kCommDestroy)) return *failure;
  if (comm == nullptr) return NcclResult::Success;
  const CommunicatorPointer communicator = remove_communicator(comm);
  return communicator == nullptr ? is_no_communicator() : end_communicator(*communicator, true);
}

NcclResult ncclCommAbort(NcclComm comm) {
  if (const auto failure = count_call(Function::kCommAbort)) return *failure;
  if (comm == nullptr) return NcclResult::Success;
  const CommunicatorPointer communicator = remove_communicator(comm);
  if (communicator == nullptr) return is_no_communicator();
  // First: what follows may wait for the GPU.
  communicator->is_aborted = true;
  return end_communicator(*communicator, false);
}

NcclResult ncclCommGetAsyncError(NcclComm comm, NcclResult* error) {
  if (const auto failure = count_call(Function::kCommGetAsyncError)) return *failure;
  const CommunicatorPointer communicator = communicator_of(comm);
  if (communicator == nullptr) return is_no_communicator();
  if (error == nullptr) return refuse(NcclResult::InvalidArgument, "asyncError is NULL");
  *error = communicator->async_error;
  if (*error != NcclResult::Success) {
    refuse(*error, "FAKE_NCCL_ASYNC_ERROR");
  } else if (*error = communicator->meeting.failure(); *error != NcclResult::Success) {
    refuse(*error, communicator->meeting.failure_text());
  }
  return NcclResult::Success;
}

const char* ncclGetErrorString(NcclResult result) {
  (void)count_call(Function::kGetErrorString);
  switch (result) {
    case NcclResult::Success:
      return "no error";
    case NcclResult::UnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case NcclResult::SystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case NcclResult::InternalError:
      return "internal error - please report this issue to the NCCL developers";
    case NcclResult::InvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case NcclResult::InvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case NcclResult::RemoteError:
      return "remote process exited or there was a network error";
    case NcclResult::InProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(NcclComm) {
  static thread_local std::string text;
  text = last_refusal();
  return text.c_str();
}

void fake_nccl_get_counts(fake_nccl_counts* counts) {
  *counts = {};
  for_each_call([&](int, const char*, std::uint64_t calls) { counts->calls += calls; });
  counts->collectives = operations();
  counts->kernels = launched_kernels();
  counts->communicators = open_communicators();
  counts->pending_kernels = pending_kernels();
}

uint64_t fake_nccl_calls_of(int thread_id) {
  std::uint64_t sum = 0;
  for_each_call(
      [&](int one, const char*, std::uint64_t calls) { sum += one == thread_id ? calls : 0; });
  return sum;
}

void fake_nccl_thread_calls(void (*each)(int, const char*, uint64_t, void*), void* argument) {
  for_each_call([&](int thread_id, const char* function, std::uint64_t calls) {
    each(thread_id, function, calls, argument);
  });
}

}  // extern "C"
}  // namespace fake_nccl
