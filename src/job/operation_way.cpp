// SPDX-License-Identifier: Apache-2.0
#include "job/operation_way.h"

#include <algorithm>

#include "collective/direct_limits.h"

namespace braid {

void choose_way(Operation& operation, const TransferSettings* settings) {
  const Ring& ring = *operation.ring;
  uint64_t direct_bytes = ring.direct_bytes;
  uint64_t halving_bytes = ring.halving_bytes;
  bool is_hierarchical = true;
  if (settings != nullptr) {
    operation.unit_bytes = settings->unit_bytes;
    operation.chunk_bytes = settings->chunk_bytes;
    if (direct_bytes != 0) direct_bytes = settings->direct_bytes;
    halving_bytes = settings->halving_bytes;
    is_hierarchical = settings->is_hierarchical;
  }
  if (operation.collective != Collective::AllReduce || ring.nodes == 1) return;
  direct_bytes = std::min(direct_bytes, direct_bytes_max(ring.nodes));
  const uint64_t bytes =
      result_bytes(operation.collective, operation.dtype, operation.count, ring.world_size);
  if (bytes != 0 && bytes <= direct_bytes) {
    operation.is_direct = true;
  } else if (ring.two_hops != nullptr && bytes <= ring.two_hops_bytes) {
    operation.route = ring.two_hops.get();
  } else if (ring.halving != nullptr && bytes <= halving_bytes) {
    operation.route = ring.halving.get();
  } else if (is_hierarchical) {
    operation.route = ring.hierarchical.get();
  }
}

}  // namespace braid
