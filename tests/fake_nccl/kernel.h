// SPDX-License-Identifier: Apache-2.0
// Kernels: what a group has for one communicator, done on the thread of the stream's hardware
// queue.
#pragma once

#include <cstdint>
#include <vector>

#include <cuda.h>

#include "communicator.h"
#include "transfer.h"

namespace fake_nccl {

/// Queues one kernel for all operations. It ends when they are done, or with the communicator's
/// abort. The communicator's context must be current.
CUresult launch(const CommunicatorPointer& communicator, std::vector<Operation> operations,
                CUstream stream);

std::uint64_t launched_kernels();
std::uint64_t pending_kernels();

}  // namespace fake_nccl
