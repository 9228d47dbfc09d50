// SPDX-License-Identifier: Apache-2.0
#include "net/received_window.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(ReceivedWindow, WaitsForTheOneThatIsMissing) {
  ReceivedWindow window;
  EXPECT_TRUE(window.accept(2));
  EXPECT_TRUE(window.accept(3));
  EXPECT_EQ(window.contiguous(), 0u);
  EXPECT_TRUE(window.accept(1));
  EXPECT_EQ(window.contiguous(), 3u);
}

TEST(ReceivedWindow, RefusesDuplicatesAndWhatNoHonestSenderSends) {
  ReceivedWindow window;
  EXPECT_FALSE(window.accept(0));
  EXPECT_FALSE(window.accept(kChunksInFlightMax + 1));
  EXPECT_TRUE(window.accept(5));
  EXPECT_FALSE(window.accept(5));
  EXPECT_TRUE(window.accept(1));
  EXPECT_FALSE(window.accept(1));
  EXPECT_FALSE(window.accept(UINT64_MAX));
  EXPECT_EQ(window.contiguous(), 1u);
}

TEST(ReceivedWindow, TakesAnyOrderWithinTheWindow) {
  ReceivedWindow window;
  std::mt19937 random(7);
  std::vector<uint64_t> block(kChunksInFlightMax);
  for (uint64_t round = 0; round < 20; ++round) {
    for (uint64_t i = 0; i < block.size(); ++i) block[i] = round * block.size() + i + 1;
    std::shuffle(block.begin(), block.end(), random);
    for (const uint64_t sequence : block) EXPECT_TRUE(window.accept(sequence)) << sequence;
    EXPECT_EQ(window.contiguous(), (round + 1) * block.size());
  }
}

}  // namespace
}  // namespace braid
