// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "planner/fit_cost.h"

namespace braid {

// What the engine's algorithms (collective/route.h) take on a network: an all-reduce of M bytes
// that goes h hops, in which a node sends s·M bytes, takes T(M) = h·hop + s·M·byte.
struct HopCost {
  double hop_seconds = 0;  // one way, and what both nodes do about a chunk
  double seconds_per_byte = 0;
  bool operator==(const HopCost&) const = default;
};

// All-reduces of up to so many bytes are direct, larger ones go by two hops, still larger ones by
// halving, and all others around the ring; 0: none.
struct AlgorithmSizes {
  uint64_t direct_bytes = 0;
  uint64_t two_hops_bytes = 0;
  uint64_t halving_bytes = 0;
  bool operator==(const AlgorithmSizes&) const = default;
};

// Before anything was measured but the round trip between the nodes, in seconds. Round trips of one
// class have the same cost (up to 0.5 ms, 1.5 ms, 3.5 ms, …), so a job that starts again among the
// same nodes has the same sizes, and the same bits. What a byte costs is not known yet: that of a
// slow network, 2 Gbit/s, is assumed, for there large all-reduces lose most by a wrong choice.
HopCost assumed_hop_cost(double round_trip_seconds);

// Up to which sizes each algorithm takes less time than those after it; 1 GiB at most. Hops and
// bytes of n nodes:
//
//   direct     1               (n − 1)·(1 + 0.2·(n − 2)), 3 at least; 1.5 where n = 2: few chunks,
//                              and one connection carries less than a network card
//   two hops   2               2(n − 1)/n·(1 + 0.2·(n − 2)²), and 1.4 instead of 1.2 where n = 3
//   halving    2·log2 n        2(n − 1)/n·1.4
//   ring       2(n − 1)        2(n − 1)/n
//
// Where several nodes send to one at the same time, they wait for each other in the last switch's
// buffer: hence the factors with n − 2. Where n is no power of two, halving goes two hops more and
// sends half of M more. All factors were measured, see docs/benchmarks.md.
AlgorithmSizes algorithm_sizes(uint32_t nodes, const HopCost& cost);

// The cost at which `measured`, single all-reduces by the algorithms that `sizes` give them, took
// about as long as they did. Nothing: they are of too few sizes to tell a hop from a byte.
std::optional<HopCost> fit_hop_cost(std::span<const CostMeasurement> measured, uint32_t nodes,
                                    const AlgorithmSizes& sizes);

}  // namespace braid
