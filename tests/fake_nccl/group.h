// SPDX-License-Identifier: Apache-2.0
// Groups: what a thread calls between ncclGroupStart and ncclGroupEnd is queued together.
#pragma once

#include <cuda.h>

#include "communicator.h"
#include "transfer.h"

namespace fake_nccl {

/// All are of the calling thread.
void begin_group();
/// The outermost end queues one kernel for each communicator. If a call of the group failed,
/// nothing is queued, and this returns the call's result.
NcclResult end_group();
bool is_in_group();

/// Outside of a group: queues the operation now.
NcclResult queue(const CommunicatorPointer& communicator, const Operation& operation,
                 CUstream stream);
/// A call of the group has failed.
NcclResult fail_group(NcclResult result);

}  // namespace fake_nccl
