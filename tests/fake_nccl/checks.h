// SPDX-License-Identifier: Apache-2.0
// What a collective is refused for.
#pragma once

#include <cuda.h>

#include "communicator.h"
#include "transfer.h"

namespace fake_nccl {

/// Everything of the call that this rank can see: type, reduction, root or peer, stream, memory.
/// The operation's input and result are 0 where this rank has none.
NcclResult check_operation(const Communicator& communicator, const Operation& operation,
                           CUstream stream);

}  // namespace fake_nccl
