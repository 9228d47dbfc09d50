// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace braid::client {

// Where each rank's block lies in an input or a result of one block per rank: the caller has them
// in the order of ranks, the daemon in the order of its ring. Any thread; it never changes.
class RankBlocks {
 public:
  // By rank: its block's place in the ring. Nothing where that is no permutation of the ranks.
  static std::optional<RankBlocks> of(std::vector<uint32_t> place_of_rank, uint32_t world_size) {
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

  bool are_in_rank_order() const { return are_in_rank_order_; }
  uint32_t count() const { return static_cast<uint32_t>(place_of_rank_.size()); }
  uint32_t place_of(uint32_t rank) const { return place_of_rank_[rank]; }
  // Both copy all blocks.
  void copy_to_ring_order(const uint8_t* from, uint8_t* to, uint64_t block_bytes) const {
    for (const uint32_t place : place_of_rank_) {
      std::memcpy(to + place * block_bytes, from, block_bytes);
      from += block_bytes;
    }
  }
  void copy_to_rank_order(const uint8_t* from, uint8_t* to, uint64_t block_bytes) const {
    for (const uint32_t place : place_of_rank_) {
      std::memcpy(to, from + place * block_bytes, block_bytes);
      to += block_bytes;
    }
  }

 private:
  std::vector<uint32_t> place_of_rank_;
  bool are_in_rank_order_ = true;
};

}  // namespace braid::client
