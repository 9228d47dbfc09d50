// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job_algorithms.h"

#include <algorithm>

#include "coordinator/racks.h"
#include "engine/early_limits.h"
#include "planner/algorithm_sizes.h"

namespace braid {

Algorithms job_algorithms(std::span<const MemberNode> nodes, uint32_t chunk_bytes,
                          const ConfiguredAlgorithms& configured, double round_trip_seconds) {
  const auto count = static_cast<uint32_t>(nodes.size());
  AlgorithmSizes sizes = algorithm_sizes(count, assumed_hop_cost(round_trip_seconds));
  sizes.direct_bytes = std::min<uint64_t>(sizes.direct_bytes, chunk_bytes);
  // Links to all nodes would be there for these alone.
  if (count > kDirectNodesMax) sizes.two_hops_bytes = 0;

  Algorithms algorithms{configured.direct_bytes.value_or(sizes.direct_bytes),
                        configured.halving_bytes.value_or(sizes.halving_bytes),
                        configured.is_hierarchical && nodes_per_rack(nodes),
                        configured.two_hops_bytes.value_or(sizes.two_hops_bytes)};
  if (count > kDirectNodesMax) algorithms.direct_bytes = 0;
  if (count < kHalvingNodesMin) algorithms.halving_bytes = 0;
  if (count < kTwoHopsNodesMin || count > kTwoHopsNodesMax) algorithms.two_hops_bytes = 0;
  return algorithms;
}

void warn_of_cut(const JobLabel& job, size_t nodes, const ConfiguredAlgorithms& configured) {
  const uint64_t direct_bytes = configured.direct_bytes.value_or(0);
  if (nodes < 2 || nodes > kDirectNodesMax) return;
  const uint64_t most = direct_bytes_max(static_cast<uint32_t>(nodes));
  if (direct_bytes <= most) return;
  BRAID_LOG_WARN(
      LogFields{.job = job},
      "job '{}': collective.direct_bytes is {}, and {} is used: among {} nodes larger all-reduces "
      "cannot be direct, because a late node must keep the parts of all others (4 MiB / ({} - 1)²)",
      job.name, direct_bytes, most, nodes, nodes);
}

}  // namespace braid
