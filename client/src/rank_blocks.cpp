// SPDX-License-Identifier: Apache-2.0
#include "rank_blocks.h"

#include <cstring>
#include <utility>

namespace braid::client {

std::optional<RankBlocks> RankBlocks::of(std::vector<uint32_t> place_of_rank, uint32_t world_size) {
  if (place_of_rank.size() != world_size) return std::nullopt;
  RankBlocks blocks;
  std::vector<bool> seen(world_size, false);
  for (uint32_t rank = 0; rank < world_size; ++rank) {
    const uint32_t place = place_of_rank[rank];
    if (place >= world_size || seen[place]) return std::nullopt;
    seen[place] = true;
    blocks.are_in_rank_order_ = blocks.are_in_rank_order_ && place == rank;
  }
  blocks.place_of_rank_ = std::move(place_of_rank);
  return blocks;
}

void RankBlocks::copy_to_ring_order(const uint8_t* from, uint8_t* to, uint64_t block_bytes) const {
  for (const uint32_t place : place_of_rank_) {
    std::memcpy(to + place * block_bytes, from, block_bytes);
    from += block_bytes;
  }
}

void RankBlocks::copy_to_rank_order(const uint8_t* from, uint8_t* to, uint64_t block_bytes) const {
  for (const uint32_t place : place_of_rank_) {
    std::memcpy(to, from + place * block_bytes, block_bytes);
    to += block_bytes;
  }
}

}  // namespace braid::client
