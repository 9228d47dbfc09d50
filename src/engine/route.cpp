// SPDX-License-Identifier: Apache-2.0
#include "engine/route.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.h"

namespace braid {
namespace {

// Fills in who sends to whom at all.
Route complete(Route route) {
  const auto add = [](std::vector<uint32_t>& places, const auto& more) {
    places.insert(places.end(), more.begin(), more.end());
  };
  for (SegmentRoute& segment : route.segments) {
    segment.parts_before = route.parts;
    route.parts += static_cast<uint32_t>(segment.parts_from.size());
    add(route.sources, segment.parts_from);
    add(route.targets, segment.sum_to);
    add(route.targets, segment.own_part_to);
    if (segment.sum_from) route.sources.push_back(*segment.sum_from);
    if (segment.part_to) route.targets.push_back(*segment.part_to);
    if (segment.part_to && !segment.sum_from) route.returns_sums = false;
  }
  for (auto* places : {&route.sources, &route.targets}) {
    std::sort(places->begin(), places->end());
    places->erase(std::unique(places->begin(), places->end()), places->end());
  }
  return route;
}

// The places of `nodes` from the one after `place` on, without it.
std::vector<uint32_t> others_from(uint32_t nodes, uint32_t place) {
  std::vector<uint32_t> others;
  for (uint32_t distance = 1; distance < nodes; ++distance)
    others.push_back((place + distance) % nodes);
  return others;
}

// Among 2^rounds places: in round t the two whose numbers differ in bit t alone exchange the
// segments that one of them keeps, those of whose numbers bit t is its own.
SegmentRoute halving_segment(uint32_t rounds, uint32_t segment, uint32_t place) {
  SegmentRoute route;
  uint32_t round = 0;
  for (; round < rounds && (segment >> round & 1) == (place >> round & 1); ++round)
    route.parts_from.push_back(place ^ 1U << round);
  route.sum_to.assign(route.parts_from.rbegin(), route.parts_from.rend());
  if (round < rounds) route.part_to = route.sum_from = place ^ 1U << round;
  return route;
}

// Appends a way around the ring of `size` places to the segment that `owner` owns there. `at`: this
// node's place among them; `place_of`: from those to places in the whole ring.
template <typename PlaceOf>
void go_around(SegmentRoute& route, uint32_t size, uint32_t owner, uint32_t at, PlaceOf place_of) {
  const uint32_t next = (at + 1) % size;
  const uint32_t previous = (at + size - 1) % size;
  if (previous != owner) route.parts_from.push_back(place_of(previous));
  // Outermost first: what the node still has to pass on itself, it does before.
  if (next != owner) route.sum_to.insert(route.sum_to.begin(), place_of(next));
  if (at == owner) return;
  route.part_to = place_of(next);
  route.sum_from = place_of(previous);
}

}  // namespace

bool one_owner_each(const Route& route, uint32_t nodes) {
  if (route.segments.size() != nodes) return false;
  for (uint32_t segment = 0; segment < nodes; ++segment) {
    if (route.segments[segment].is_owner() != (segment == route.place)) return false;
  }
  return true;
}

Route reduce_scatter_of(const Route& route) {
  Route half;
  half.place = route.place;
  half.first_segment = route.first_segment;
  half.begins_others = route.begins_others;
  for (SegmentRoute segment : route.segments) {
    segment.sum_from.reset();
    segment.sum_to.clear();
    half.segments.push_back(std::move(segment));
  }
  return complete(std::move(half));
}

Route gather_of(const Route& route) {
  Route half;
  half.place = half.first_segment = route.place;
  half.begins_others = {route.place};
  for (SegmentRoute segment : route.segments) {
    segment.parts_from.clear();
    segment.part_to.reset();
    half.segments.push_back(std::move(segment));
  }
  return complete(std::move(half));
}

Route ring_route(uint32_t nodes, uint32_t place) {
  BRAID_ASSERT(nodes >= 2 && place < nodes, "a ring takes two nodes");
  Route route;
  route.place = place;
  // The bytes that start at this node visit all others.
  route.first_segment = (place + nodes - 1) % nodes;
  route.begins_others = {route.first_segment};
  for (uint32_t segment = 0; segment < nodes; ++segment) {
    SegmentRoute segment_route;
    go_around(segment_route, nodes, segment, place, [](uint32_t other) { return other; });
    route.segments.push_back(std::move(segment_route));
  }
  return complete(std::move(route));
}

Route ring_reduce_scatter_route(uint32_t nodes, uint32_t place) {
  return reduce_scatter_of(ring_route(nodes, place));
}

Route ring_gather_route(uint32_t nodes, uint32_t place) {
  return gather_of(ring_route(nodes, place));
}

Route direct_route(uint32_t nodes, uint32_t place) {
  BRAID_ASSERT(nodes >= 2 && place < nodes, "an exchange takes two nodes");
  SegmentRoute segment_route;
  for (uint32_t other = 0; other < nodes; ++other) {
    if (other != place) segment_route.parts_from.push_back(other);
  }
  // The successor first, so that not all nodes send to the same one at once.
  segment_route.own_part_to = others_from(nodes, place);
  Route route;
  route.place = place;
  route.begins_others = {0};
  route.segments.push_back(std::move(segment_route));
  return complete(std::move(route));
}

Route halving_route(uint32_t nodes, uint32_t place) {
  BRAID_ASSERT(nodes >= 2 && place < nodes, "halving takes two nodes");
  const uint32_t paired = std::bit_floor(nodes);
  const auto rounds = static_cast<uint32_t>(std::countr_zero(paired));
  Route route;
  route.place = place;
  if (place >= paired) {
    SegmentRoute segment_route;
    segment_route.part_to = segment_route.sum_from = place - paired;
    route.segments.assign(paired, segment_route);
    return complete(std::move(route));
  }
  for (uint32_t segment = 0; segment < paired; ++segment) {
    // A chunk need not visit all nodes: only where no segment is empty each node hears of the unit.
    route.begins_others.push_back(segment);
    SegmentRoute segment_route = halving_segment(rounds, segment, place);
    if (place + paired < nodes) {
      segment_route.parts_from.insert(segment_route.parts_from.begin(), place + paired);
      segment_route.sum_to.push_back(place + paired);
    }
    route.segments.push_back(std::move(segment_route));
  }
  return complete(std::move(route));
}

Route two_hops_route(uint32_t nodes, uint32_t place) {
  BRAID_ASSERT(nodes >= 2 && place < nodes, "two hops take two nodes");
  Route route;
  route.place = place;
  route.first_segment = (place + 1) % nodes;  // so that not all nodes send to the same one at once
  for (uint32_t segment = 0; segment < nodes; ++segment) {
    route.begins_others.push_back(segment);  // as with halving
    SegmentRoute segment_route;
    if (segment == place) {
      segment_route.parts_from = segment_route.sum_to = others_from(nodes, place);
    } else {
      segment_route.part_to = segment_route.sum_from = segment;
    }
    route.segments.push_back(std::move(segment_route));
  }
  return complete(std::move(route));
}

Route hierarchical_route(uint32_t racks, uint32_t rack_nodes, uint32_t place) {
  BRAID_ASSERT(racks >= 2 && rack_nodes >= 2 && place < racks * rack_nodes,
               "a hierarchy takes two racks of two nodes");
  const uint32_t rack = place / rack_nodes;
  const uint32_t at = place % rack_nodes;
  Route route;
  route.place = place;
  for (uint32_t segment = 0; segment < racks * rack_nodes; ++segment) {
    route.begins_others.push_back(segment);  // as with halving
    const uint32_t owning_rack = segment / rack_nodes;
    const uint32_t owner = segment % rack_nodes;
    SegmentRoute segment_route;
    go_around(segment_route, rack_nodes, owner, at,
              [&](uint32_t other) { return rack * rack_nodes + other; });
    if (at == owner) {
      go_around(segment_route, racks, owning_rack, rack,
                [&](uint32_t other) { return other * rack_nodes + at; });
    }
    route.segments.push_back(std::move(segment_route));
  }
  return complete(std::move(route));
}

Route exchange_route(uint32_t nodes, uint32_t place) {
  BRAID_ASSERT(place < nodes, "a node exchanges with the nodes of its ring");
  Route route;
  route.place = place;
  // The successor first, so that not all nodes send to the same one at once.
  route.first_segment = nodes + (place + 1) % nodes;
  route.segments.resize(2 * size_t{nodes});
  for (uint32_t other = 0; other < nodes; ++other) {
    if (other == place) continue;
    route.segments[other].sum_from = other;
    route.segments[nodes + other].part_to = other;
  }
  return complete(std::move(route));
}

std::shared_ptr<const BasicRoutes> basic_routes(uint32_t nodes, uint32_t place) {
  auto routes = std::make_shared<BasicRoutes>();
  if (nodes == 1) {
    Route local;
    local.segments.resize(1);  // this node owns all
    *routes = {local, local, local, local, exchange_route(1, 0), {}, {}, {}};
    return routes;
  }
  const Route two_hops = nodes <= kTwoHopsNodesMax ? two_hops_route(nodes, place) : Route();
  *routes = {ring_route(nodes, place),        ring_reduce_scatter_route(nodes, place),
             ring_gather_route(nodes, place), direct_route(nodes, place),
             exchange_route(nodes, place),    two_hops,
             reduce_scatter_of(two_hops),     gather_of(two_hops)};
  return routes;
}

}  // namespace braid
