// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/log.h"
#include "messages/control_messages.h"

namespace braid {

// Which algorithms all-reduces take, as it is configured; see Ring. Nothing: by the cost of hops
// and bytes (planner/algorithm_sizes.h), from the round trips between this node and the job's
// others.
struct ConfiguredAlgorithms {
  std::optional<uint64_t> direct_bytes = 0;
  std::optional<uint64_t> halving_bytes = 0;
  bool is_hierarchical = false;
  std::optional<uint64_t> two_hops_bytes = 0;
};

// Among more nodes nothing is direct: each would send as much to every one of them.
constexpr size_t kDirectNodesMax = 8;
// By two hops each node sends to every other one: below, that saves no hop around the ring, and
// above, the connections are too many.
constexpr size_t kTwoHopsNodesMin = 3;
// Below, going by halves saves no hop.
constexpr size_t kHalvingNodesMin = 4;

// What the all-reduces of a job of these nodes, in ring order, take. `round_trip_seconds`: the
// longest; 0: not known.
Algorithms job_algorithms(std::span<const MemberNode> nodes, uint32_t chunk_bytes,
                          const ConfiguredAlgorithms& configured, double round_trip_seconds);
// Warns if a job of so many nodes cannot have the direct_bytes that are configured.
void warn_of_cut(const JobLabel& job, size_t nodes, const ConfiguredAlgorithms& configured);

}  // namespace braid
