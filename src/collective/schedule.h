// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace braid {

// What one node has to do with one segment of an all-reduce. Nodes are named by their place in the
// ring. A segment's sum comes together along a tree at its owner and goes out along another one.
struct SegmentRoute {
  // Whose parts this node adds to its own, in this order whatever the order in which they come.
  std::vector<uint32_t> parts_from;
  // Who gets the sum of them; nothing: this node owns the segment, the sum is complete.
  std::optional<uint32_t> part_to;
  // Who sends the complete sum; nothing at the owner.
  std::optional<uint32_t> sum_from;
  std::vector<uint32_t> sum_to;
};

// How an all-reduce goes from node to node where it does not go around the ring: one node's view.
// A pure function of the nodes, so all of them have matching ones, and the order of additions
// follows from it alone.
struct Schedule {
  std::vector<SegmentRoute> segments;  // a unit is cut into as many
  std::vector<uint32_t> sources;       // places that send to this node, ascending
  std::vector<uint32_t> targets;       // places that it sends to, ascending
  // Units begin here as soon as they may, whatever else is in flight: nobody could begin them from
  // outside, for no node sends to this one before it has sent itself.
  bool begins_at_once = false;
};

// Recursive halving, then recursive doubling (Thakur, Rabenseifner, Gropp, "Optimization of
// Collective Communication Operations in MPICH", IJHPCA 2005): 2·log2(n) hops instead of 2(n − 1),
// as many bytes as around the ring. The largest parts go to the nearest place. Where the number of
// nodes is no power of two, p is the next lower one: the nodes from place p on hand all they have
// to the node p places before them, and get the sums from it at the end. 2 nodes at least.
Schedule halving_schedule(uint32_t nodes, uint32_t place);

// Around the ring of each rack to the owners there, around the ring of those of the same place in
// all racks, and around the racks again: of n nodes in R racks, a node sends only 2(R − 1)/n of the
// bytes to another rack. `rack_nodes` nodes each, adjacent in the ring; 2 racks of 2 at least.
Schedule hierarchical_schedule(uint32_t racks, uint32_t rack_nodes, uint32_t place);

}  // namespace braid
