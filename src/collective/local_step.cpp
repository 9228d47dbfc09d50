// SPDX-License-Identifier: Apache-2.0
#include "collective/local_step.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace braid {
namespace {

// Inputs and result together: what is more has left the caches before a trainer reads it. Measured
// with the reading, on 32 MiB of cache: at 12 MB streaming takes 1.07 of the time, at 24 MB 0.82.
constexpr uint64_t kStreamedBytesMin = 16 << 20;
// Two passes go over so much at a time, so that the second finds it in the cache.
constexpr uint64_t kPassBytes = 128 << 10;

}  // namespace

LocalStep::LocalStep(const Operation& operation) : operation_(operation) {
  operands_.reserve(operation.inputs.size() + 1);
  const Ring& ring = *operation.ring;
  uint64_t ranks_before = 0;
  for (uint32_t node = 0; node < ring.self; ++node) ranks_before += ring.ranks_of_node[node];
  first_block_ = ranks_before * operation.count * element_bytes(operation.dtype);
}

void LocalStep::reduce(const Extent& extent, const uint8_t* wire) {
  reduce(extent, wire, Store::Cached);
}

void LocalStep::reduce_and_finish(const Extent& extent) {
  if (operation_.reduction != Reduction::Average) {
    const uint64_t bytes = operation_.count * element_bytes(operation_.dtype);
    const bool is_large = bytes >= kStreamedBytesMin / (operation_.inputs.size() + 1);
    return reduce(extent, nullptr, is_large ? Store::Streamed : Store::Cached);
  }
  for (uint64_t done = 0; done < extent.bytes; done += kPassBytes) {
    const Extent pass{extent.offset + done, std::min(kPassBytes, extent.bytes - done)};
    reduce(pass, nullptr, Store::Cached);
    finish(pass);
  }
}

void LocalStep::reduce(const Extent& extent, const uint8_t* wire, Store store) {
  for (uint64_t done = 0; done < extent.bytes;) {
    const uint64_t offset = extent.offset + done;
    uint64_t bytes = extent.bytes - done;
    operands_.clear();
    for (const OperationInput& input : operation_.inputs)
      operands_.push_back(input.at(offset, bytes, bytes));
    if (wire != nullptr) operands_.push_back(wire + done);
    reduce_all(operation_.dtype, operation_.reduction, operands_,
               bytes / element_bytes(operation_.dtype), operation_.result + offset, store);
    done += bytes;
  }
}

void LocalStep::finish(const Extent& extent) {
  if (operation_.reduction != Reduction::Average) return;
  divide_all(operation_.dtype, operation_.result + extent.offset,
             extent.bytes / element_bytes(operation_.dtype), operation_.ring->world_size);
}

void LocalStep::copy_inputs(const Extent& extent) {
  if (operation_.collective == Collective::Broadcast) {
    const OperationInput& input = operation_.inputs[operation_.root_local_input];
    std::memcpy(operation_.result + extent.offset, input.find(extent.offset, extent.bytes),
                extent.bytes);
    return;
  }
  const uint64_t block_bytes = operation_.count * element_bytes(operation_.dtype);
  const uint64_t end = extent.offset + extent.bytes;
  for (uint64_t at = extent.offset; at < end;) {
    const uint64_t rank = (at - first_block_) / block_bytes;
    const uint64_t within = (at - first_block_) % block_bytes;
    const uint64_t bytes = std::min(block_bytes - within, end - at);
    BRAID_ASSERT(rank < operation_.inputs.size(),
                 "the node's own segment holds its ranks' blocks alone");
    std::memcpy(operation_.result + at, operation_.inputs[rank].find(within, bytes), bytes);
    at += bytes;
  }
}

}  // namespace braid
