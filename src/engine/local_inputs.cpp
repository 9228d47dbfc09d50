// SPDX-License-Identifier: Apache-2.0
#include "engine/local_inputs.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace braid {

LocalInputs::LocalInputs(const Operation& operation) : operation_(operation) {
  operands_.reserve(operation.inputs.size() + 1);
  const Ring& ring = *operation.ring;
  uint64_t ranks_before = 0;
  for (uint32_t node = 0; node < ring.self; ++node) ranks_before += ring.ranks_of_node[node];
  first_block_ = ranks_before * operation.count * element_bytes(operation.dtype);
}

void LocalInputs::reduce(const Extent& extent, const uint8_t* wire, uint8_t* out, Store store) {
  for (uint64_t done = 0; done < extent.bytes;) {
    uint64_t bytes = extent.bytes - done;
    operands_.clear();
    for (const OperationInput& input : operation_.inputs)
      operands_.push_back(input.at(extent.offset + done, bytes, bytes));
    if (wire != nullptr) operands_.push_back(wire + done);
    reduce_all(operation_.dtype, operation_.reduction, operands_,
               bytes / element_bytes(operation_.dtype), out + done, store);
    done += bytes;
  }
}

void LocalInputs::copy(const Extent& extent, uint8_t* out) {
  if (operation_.collective == Collective::Broadcast) {
    const OperationInput& input = operation_.inputs[operation_.root_local_input];
    std::memcpy(out, input.find(extent.offset, extent.bytes), extent.bytes);
    return;
  }
  const uint64_t block_bytes = operation_.count * element_bytes(operation_.dtype);
  for (uint64_t done = 0; done < extent.bytes;) {
    const uint64_t at = extent.offset + done - first_block_;
    const uint64_t bytes = std::min(block_bytes - at % block_bytes, extent.bytes - done);
    const uint64_t rank = at / block_bytes;
    BRAID_ASSERT(rank < operation_.inputs.size(),
                 "the node's own segment holds its ranks' blocks alone");
    std::memcpy(out + done, operation_.inputs[rank].find(at % block_bytes, bytes), bytes);
    done += bytes;
  }
}

const uint8_t* LocalInputs::find(const Extent& extent) const {
  return operation_.inputs.size() == 1 ? operation_.inputs[0].find(extent.offset, extent.bytes)
                                       : nullptr;
}

}  // namespace braid
