// SPDX-License-Identifier: Apache-2.0
#include "rank_blocks.h"

#include <gtest/gtest.h>

namespace braid::client {
namespace {

TEST(RankBlocksTest, TakesPermutationsOfTheRanksAlone) {
  EXPECT_TRUE(RankBlocks::of({2, 0, 1}, 3).has_value());
  EXPECT_FALSE(RankBlocks::of({2, 0}, 3).has_value());
  EXPECT_FALSE(RankBlocks::of({2, 0, 3}, 3).has_value());
  EXPECT_FALSE(RankBlocks::of({2, 0, 2}, 3).has_value());
}

TEST(RankBlocksTest, PutsEachBlockInItsPlaceAndBack) {
  const RankBlocks blocks = RankBlocks::of({2, 0, 1}, 3).value();
  EXPECT_FALSE(blocks.are_in_rank_order());
  const std::vector<uint8_t> by_rank = {10, 11, 20, 21, 30, 31};
  std::vector<uint8_t> in_ring(6);
  blocks.copy_to_ring_order(by_rank.data(), in_ring.data(), 2);
  EXPECT_EQ(in_ring, (std::vector<uint8_t>{20, 21, 30, 31, 10, 11}));
  std::vector<uint8_t> back(6);
  blocks.copy_to_rank_order(in_ring.data(), back.data(), 2);
  EXPECT_EQ(back, by_rank);
}

}  // namespace
}  // namespace braid::client
