// SPDX-License-Identifier: Apache-2.0
#include "engine/owner_step.h"

#include "engine/fixed_owners.h"
#include "engine/reduce_kernels.h"

namespace braid {

uint64_t first_element_of(const Operation& operation, const Extent& extent) {
  return operation.fixed_owners->in_set(extent.offset / element_bytes(operation.dtype));
}

StepOutcome AverageStep::apply(const Operation& operation, const Extent& extent, uint8_t* bytes,
                               StepEnd /*end*/) {
  divide_all(operation.dtype, bytes, extent.bytes / element_bytes(operation.dtype),
             operation.ring->world_size);
  return StepOutcome::Ended;
}

}  // namespace braid
