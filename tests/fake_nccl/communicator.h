// SPDX-License-Identifier: Apache-2.0
// One rank's end of a communicator.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <cuda.h>

#include "meeting.h"

namespace fake_nccl {

using braid::NcclComm;

/// Functions of NCCL and kernels have it, so it lives until the last kernel has ended. Any thread.
struct Communicator {
  int rank = 0, ranks = 0;
  int device = 0;
  CUcontext context = nullptr;
  CUevent last_kernel = nullptr;  // recorded behind each kernel
  Meeting meeting;
  std::atomic<bool> is_aborted = false;
  std::atomic<NcclResult> async_error = NcclResult::Success;  // of this rank alone
  /// Kernels run one after the other, in the order in which they were queued.
  std::atomic<std::uint64_t> queued = 0, ended = 0;
};
using CommunicatorPointer = std::shared_ptr<Communicator>;

/// Handles are numbers that are no addresses and are never used again, so that a stale one is
/// found.
NcclComm add_communicator(CommunicatorPointer communicator);
/// Null: there is none, or not any more.
CommunicatorPointer communicator_of(NcclComm handle);
CommunicatorPointer remove_communicator(NcclComm handle);
std::uint64_t open_communicators();

/// The communicator's context is current on this thread, for as long as this lives.
class CurrentContext {
 public:
  explicit CurrentContext(const Communicator& communicator);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  CUresult result() const { return result_; }

 private:
  CUresult result_;
};

}  // namespace fake_nccl
