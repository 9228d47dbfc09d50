// SPDX-License-Identifier: Apache-2.0
#include "collective/schedule.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace braid {
namespace {

// Fills in who sends to whom at all.
Schedule complete(Schedule schedule) {
  const auto add = [](std::vector<uint32_t>& places, const auto& more) {
    places.insert(places.end(), more.begin(), more.end());
  };
  for (const SegmentRoute& route : schedule.segments) {
    add(schedule.sources, route.parts_from);
    add(schedule.targets, route.sum_to);
    if (route.sum_from) schedule.sources.push_back(*route.sum_from);
    if (route.part_to) schedule.targets.push_back(*route.part_to);
  }
  for (auto* places : {&schedule.sources, &schedule.targets}) {
    std::sort(places->begin(), places->end());
    places->erase(std::unique(places->begin(), places->end()), places->end());
  }
  return schedule;
}

// Among 2^rounds places: in round t the two whose numbers differ in bit t alone exchange the
// segments that one of them keeps, those of whose numbers bit t is its own.
SegmentRoute halving_route(uint32_t rounds, uint32_t segment, uint32_t place) {
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

Schedule halving_schedule(uint32_t nodes, uint32_t place) {
  BRAID_ASSERT(nodes >= 2 && place < nodes, "halving takes two nodes");
  const uint32_t paired = std::bit_floor(nodes);
  const auto rounds = static_cast<uint32_t>(std::countr_zero(paired));
  Schedule schedule;
  if (place >= paired) {
    schedule.begins_at_once = true;
    schedule.segments.assign(paired, {{}, place - paired, place - paired, {}});
    return complete(std::move(schedule));
  }
  for (uint32_t segment = 0; segment < paired; ++segment) {
    SegmentRoute route = halving_route(rounds, segment, place);
    if (place + paired < nodes) {
      route.parts_from.insert(route.parts_from.begin(), place + paired);
      route.sum_to.push_back(place + paired);
    }
    schedule.segments.push_back(std::move(route));
  }
  return complete(std::move(schedule));
}

Schedule hierarchical_schedule(uint32_t racks, uint32_t rack_nodes, uint32_t place) {
  BRAID_ASSERT(racks >= 2 && rack_nodes >= 2 && place < racks * rack_nodes,
               "a hierarchy takes two racks of two nodes");
  const uint32_t rack = place / rack_nodes;
  const uint32_t at = place % rack_nodes;
  Schedule schedule;
  for (uint32_t segment = 0; segment < racks * rack_nodes; ++segment) {
    const uint32_t owning_rack = segment / rack_nodes;
    const uint32_t owner = segment % rack_nodes;
    SegmentRoute route;
    go_around(route, rack_nodes, owner, at,
              [&](uint32_t other) { return rack * rack_nodes + other; });
    if (at == owner) {
      go_around(route, racks, owning_rack, rack,
                [&](uint32_t other) { return other * rack_nodes + at; });
    }
    schedule.segments.push_back(std::move(route));
  }
  return complete(std::move(schedule));
}

}  // namespace braid
