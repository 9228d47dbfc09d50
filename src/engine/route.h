// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace braid {

// What one node has to do with one segment. Nodes are named by their place in the ring. A segment's
// sum comes together along a tree at its owner and goes out along another one; where nothing is
// added, the owner's own bytes are the sum, and where nothing goes out, the owner keeps it.
struct SegmentRoute {
  // Whose parts this node adds to its own, in this order whatever the order in which they come.
  std::vector<uint32_t> parts_from;
  // Who gets the sum of them; nothing: this node owns the segment, or adds nothing to it.
  std::optional<uint32_t> part_to;
  // Who sends the complete sum; nothing at an owner, and where this node does not get it.
  std::optional<uint32_t> sum_from;
  std::vector<uint32_t> sum_to;
  // Who gets this node's own part alone, in this order. Not empty: all nodes own the segment, and
  // each of them adds all parts at once in the order of the places, its own among them, so that all
  // get the same bits.
  std::vector<uint32_t> own_part_to;

  uint32_t parts_before = 0;  // parts_from of the segments before this one, together

  bool is_owner() const { return !part_to && !sum_from; }
  bool is_direct() const { return !own_part_to.empty(); }
};

// How an operation goes from node to node: one node's view. A pure function of the nodes, so all of
// them have matching ones, and the order of additions follows from it alone.
struct Route {
  std::vector<SegmentRoute> segments;  // a unit is cut into as many
  std::vector<uint32_t> sources;       // places that send to this node, ascending
  std::vector<uint32_t> targets;       // places that it sends to, ascending
  uint32_t place = 0;                  // this node's
  uint32_t parts = 0;                  // parts_from of all segments, together
  uint32_t first_segment = 0;          // is sent first; then the following ones
  // Whether each node that gives a part of a segment gets the segment's sum.
  bool returns_sums = true;
  // What this node sends when it begins a unit begins the unit on all others, unless one of these
  // segments is empty. Only then may the unit wait for a stream here, see engine.cpp. None: never,
  // for no node sends to this one before it has sent itself.
  std::vector<uint32_t> begins_others;
};

// Whether each of the nodes owns the segment of its place, and owns it alone.
bool one_owner_each(const Route& route, uint32_t nodes);

// One half of a route by which each node owns one segment: sums stay with their owners, or the
// owners' own bytes go out and nothing is added.
Route reduce_scatter_of(const Route& route);
Route gather_of(const Route& route);

// Around the ring, 2(n − 1) hops: segment s starts at place s + 1 and is added up hop by hop until
// place s owns the sum, which goes on around the ring as far as place s − 1 (reduce-scatter, then
// all-gather). A reduce-scatter is the first half alone. An all-gather and a broadcast are the
// second one, with the owner's own bytes. 2 nodes at least.
Route ring_route(uint32_t nodes, uint32_t place);
Route ring_reduce_scatter_route(uint32_t nodes, uint32_t place);
Route ring_gather_route(uint32_t nodes, uint32_t place);

// Direct: every node sends its part, whole, to every other one. One hop, and n/2 times the bytes.
Route direct_route(uint32_t nodes, uint32_t place);

// Recursive halving, then recursive doubling (Thakur, Rabenseifner, Gropp, "Optimization of
// Collective Communication Operations in MPICH", IJHPCA 2005): 2·log2(n) hops instead of 2(n − 1),
// as many bytes as around the ring. The largest parts go to the nearest place. Where the number of
// nodes is no power of two, p is the next lower one: the nodes from place p on hand all they have
// to the node p places before them, and get the sums from it at the end. 2 nodes at least.
Route halving_route(uint32_t nodes, uint32_t place);

// Two hops: each node sends its part of a segment straight to the owner, which adds them in the
// order of the ring from itself on, and sends the sum straight to all. As many bytes as around the
// ring, and as many connections as direct. 2 nodes at least.
Route two_hops_route(uint32_t nodes, uint32_t place);
// Among more nodes nobody has as many connections as that takes.
inline constexpr uint32_t kTwoHopsNodesMax = 32;

// Around the ring of each rack to the owners there, around the ring of those of the same place in
// all racks, and around the racks again: of n nodes in R racks, a node sends only 2(R − 1)/n of the
// bytes to another rack. `rack_nodes` nodes each, adjacent in the ring; 2 racks of 2 at least.
Route hierarchical_route(uint32_t racks, uint32_t rack_nodes, uint32_t place);

// Exchange: every node sends each other one bytes of its own, straight. What comes from place s is
// segment s here, what goes to place t is segment nodes + t; those of this node itself are not
// sent. (All-to-all personalised exchange: Johnsson and Ho, "Optimum Broadcasting and Personalized
// Communication in Hypercubes", IEEE Transactions on Computers 38(9), 1989.)
Route exchange_route(uint32_t nodes, uint32_t place);

// The routes that every job has; those of one node go nowhere.
struct BasicRoutes {
  Route all_reduce;
  Route reduce_scatter;
  Route gather;
  Route direct;
  Route exchange;
  // Two hops among 2 to kTwoHopsNodesMax nodes, else empty; and its halves.
  Route two_hops;
  Route two_hops_reduce_scatter;
  Route two_hops_gather;
};
std::shared_ptr<const BasicRoutes> basic_routes(uint32_t nodes, uint32_t place);

}  // namespace braid
