// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ipc/shared_memory.h"
#include "job/tensor_table.h"
#include "messages/signature.h"
#include "update/update_step.h"

namespace braid {

// What a rank asks of the owners of a tensor with state, as its submission says: copied out of the
// arena at `table`, for its trainer may change it at any time. InvalidArgument: nothing is there,
// or it makes no sense.
Result<UpdateStep> submitted_update(const Tensor& tensor, const Signature& signature,
                                    const SharedMemory& arena, uint64_t table);

}  // namespace braid
