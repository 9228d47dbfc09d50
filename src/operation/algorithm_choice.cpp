// SPDX-License-Identifier: Apache-2.0
#include "operation/algorithm_choice.h"

#include <algorithm>

#include "engine/early_limits.h"
#include "engine/hop.h"

namespace braid {
namespace {

// Whether parts by two hops may go early: one unit, of segments that all have bytes. Where owners
// are fixed, neither follows from the operation's size.
bool may_be_early(const Operation& operation, uint64_t bytes) {
  const Ring& ring = *operation.ring;
  const uint64_t unit_bytes = operation.unit_bytes == 0 ? ring.unit_bytes : operation.unit_bytes;
  return operation.fixed_owners == nullptr &&
         bytes <= std::min(unit_bytes, early_two_hops_bytes_max(ring.nodes)) &&
         bytes >= early_two_hops_bytes_min(ring.nodes);
}

// Whether so many bytes are not more when they travel: then they have room where those of early
// operations are kept.
bool is_shortened(const Operation& operation, uint64_t bytes) {
  return operation.hop == nullptr ||
         encoded_bytes_max(*operation.hop, bytes / sizeof(float)) <= bytes;
}

// For an operation that is half an all-reduce. Straight where links lead to all and it is small
// enough, or encoded: what is added on the way would be encoded once more at each node.
const Route* half_route(const Operation& operation, uint64_t bytes, uint64_t two_hops_bytes) {
  const Ring& ring = *operation.ring;
  const bool is_encoded = operation.hop != nullptr && !ring.routes->two_hops.segments.empty();
  const bool is_straight = is_encoded || (ring.two_hops != nullptr && bytes <= two_hops_bytes);
  if (operation.halves == Halves::Gather)
    return is_straight ? &ring.routes->two_hops_gather : &ring.routes->gather;
  return is_straight ? &ring.routes->two_hops_reduce_scatter : &ring.routes->reduce_scatter;
}

}  // namespace

void choose_algorithm(Operation& operation, const TransferSettings* settings,
                      uint64_t signature_hash) {
  const Ring& ring = *operation.ring;
  const uint32_t signature = std::max<uint32_t>(1, static_cast<uint32_t>(signature_hash));
  uint64_t direct_bytes = ring.direct_bytes;
  uint64_t two_hops_bytes = ring.two_hops_bytes;
  uint64_t halving_bytes = ring.halving_bytes;
  bool is_hierarchical = true;
  if (settings != nullptr) {
    operation.unit_bytes = settings->unit_bytes;
    operation.chunk_bytes = settings->chunk_bytes;
    if (direct_bytes != 0) direct_bytes = settings->direct_bytes;
    two_hops_bytes = settings->two_hops_bytes;
    halving_bytes = settings->halving_bytes;
    is_hierarchical = settings->is_hierarchical;
  }
  if (operation.collective != Collective::AllReduce || ring.nodes == 1) return;
  const auto may_take = [&](const std::shared_ptr<const Route>& route) {
    return route != nullptr &&
           (operation.fixed_owners == nullptr || one_owner_each(*route, ring.nodes));
  };
  direct_bytes =
      operation.fixed_owners != nullptr ? 0 : std::min(direct_bytes, direct_bytes_max(ring.nodes));
  const uint64_t bytes =
      result_bytes(operation.collective, operation.dtype, operation.count, ring.world_size);
  if (operation.halves != Halves::Both) {
    operation.route = half_route(operation, bytes, two_hops_bytes);
  } else if (bytes != 0 && bytes <= direct_bytes && is_shortened(operation, bytes)) {
    operation.is_direct = true;
    operation.signature = signature;
  } else if (operation.hop != nullptr && !ring.routes->two_hops.segments.empty()) {
    // Straight to the owner: what is added on the way would be encoded once more at each node.
    operation.route = &ring.routes->two_hops;
    if (may_be_early(operation, bytes) && is_shortened(operation, bytes))
      operation.signature = signature;
  } else if (may_take(ring.two_hops) && bytes <= two_hops_bytes) {
    operation.route = ring.two_hops.get();
    if (may_be_early(operation, bytes)) operation.signature = signature;
  } else if (may_take(ring.halving) && bytes <= halving_bytes) {
    operation.route = ring.halving.get();
  } else if (is_hierarchical && may_take(ring.hierarchical)) {
    operation.route = ring.hierarchical.get();
  }
}

}  // namespace braid
