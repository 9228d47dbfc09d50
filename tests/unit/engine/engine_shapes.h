// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine_world.h"

namespace braid::test {

// The nodes of a ring, and how their all-reduces go.
struct Shape {
  std::string name;
  std::vector<uint32_t> ranks_of_node;
  std::function<Route(uint32_t, uint32_t)> route;  // none: around the ring or, if it is, direct
  bool is_direct = false;
  bool is_early = false;
};

inline WorldOptions options_of(const Shape& shape, uint64_t seed) {
  WorldOptions options;
  options.ranks_of_node = shape.ranks_of_node;
  options.route = shape.route;
  options.direct_bytes = shape.is_direct ? 1 << 20 : 0;
  if (shape.is_early) options.early_from = 1;
  options.io_loops = 1 + static_cast<uint32_t>(seed / 3 % 2);
  options.hostility.submit_pulls = seed % 3 == 0;
  return options;
}

// Racks of so many nodes, adjacent in the ring.
inline std::function<Route(uint32_t, uint32_t)> by_racks_of(uint32_t rack_nodes) {
  return [rack_nodes](uint32_t nodes, uint32_t place) {
    return hierarchical_route(nodes / rack_nodes, rack_nodes, place);
  };
}

// A header of a first chunk of the operation's first unit.
inline proto::ChunkHeader chunk_of(const OperationKey& key, proto::Phase phase, uint32_t segment,
                                   uint32_t bytes) {
  proto::ChunkHeader header{};
  header.phase = static_cast<uint8_t>(phase);
  header.job_key = key.job_key;
  header.tensor = key.tensor;
  header.step = key.step;
  header.segment = static_cast<uint16_t>(segment);
  header.bytes = bytes;
  return header;
}

}  // namespace braid::test
