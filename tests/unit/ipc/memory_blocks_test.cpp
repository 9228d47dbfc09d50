// SPDX-License-Identifier: Apache-2.0
#include "ipc/memory_blocks.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kBlock = 100;
constexpr uint32_t kPatience = MemoryBlocks::kFirstPatienceRounds;

class MemoryBlocksTest : public ::testing::Test {
 protected:
  void reserve_all(MemoryBlocks& blocks) {
    while (const auto wanted = blocks.next_wanted(UINT64_MAX)) blocks.on_reserved(*wanted);
  }
  void use(const MemoryRange& extent) {
    blocks_.use(extent);
    reserve_all(blocks_);
  }
  // How much goes back after a round.
  uint64_t pass_round() {
    blocks_.pass_round();
    uint64_t bytes = 0;
    while (const auto idle = blocks_.next_idle(UINT64_MAX)) {
      blocks_.on_given_back(*idle);
      bytes += idle->bytes;
    }
    return bytes;
  }
  uint64_t pass_rounds(uint32_t rounds) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < rounds; ++i) bytes += pass_round();
    return bytes;
  }

  MemoryBlocks blocks_{1050, kBlock, 0};
};

TEST_F(MemoryBlocksTest, WhatIsUsedIsWantedUntilItIsReserved) {
  EXPECT_EQ(blocks_.missing_bytes({250, 100}), 200u);
  EXPECT_FALSE(blocks_.has_memory({250, 100}));
  EXPECT_FALSE(blocks_.has_wanted());
  blocks_.use({250, 100});
  EXPECT_TRUE(blocks_.has_wanted());
  EXPECT_EQ(blocks_.taken_bytes(), 200u);
  EXPECT_EQ(blocks_.missing_bytes({250, 100}), 0u);
  EXPECT_FALSE(blocks_.has_memory({250, 100}));
  EXPECT_EQ(blocks_.next_wanted(UINT64_MAX), (MemoryRange{200, 200}));
  EXPECT_EQ(blocks_.next_wanted(10), (MemoryRange{200, 100})) << "one at least";
  blocks_.on_reserved({200, 100});
  EXPECT_TRUE(blocks_.has_memory({250, 50}));
  EXPECT_FALSE(blocks_.has_memory({250, 51}));
  blocks_.on_reserved({300, 100});
  EXPECT_TRUE(blocks_.has_memory({200, 200}));
  EXPECT_FALSE(blocks_.next_wanted(UINT64_MAX).has_value());
}

TEST_F(MemoryBlocksTest, TheLastBlockEndsWithTheMemory) {
  use({1000, 50});
  EXPECT_EQ(blocks_.taken_bytes(), 50u);
  blocks_.stop_using({1000, 50});
  EXPECT_EQ(pass_rounds(kPatience), 50u);
  EXPECT_EQ(blocks_.taken_bytes(), 0u);
}

TEST_F(MemoryBlocksTest, WhatIsIdleLongEnoughGoesTheHighestFirst) {
  use({0, 100});
  use({100, 200});
  use({400, 100});
  blocks_.stop_using({100, 200});
  blocks_.stop_using({400, 100});
  for (uint32_t i = 0; i + 1 < kPatience; ++i) EXPECT_EQ(pass_round(), 0u);
  blocks_.pass_round();
  EXPECT_EQ(blocks_.next_idle(150), (MemoryRange{400, 100}));
  EXPECT_EQ(blocks_.next_idle(150), (MemoryRange{200, 100})) << "no more than asked for";
  EXPECT_EQ(blocks_.next_idle(150), (MemoryRange{100, 100}));
  EXPECT_FALSE(blocks_.next_idle(150).has_value());
  EXPECT_EQ(blocks_.taken_bytes(), 400u);
  for (const MemoryRange& range : {MemoryRange{400, 100}, {200, 100}, {100, 100}})
    blocks_.on_given_back(range);
  EXPECT_EQ(blocks_.taken_bytes(), 100u);
  EXPECT_TRUE(blocks_.has_memory({0, 100}));
}

TEST_F(MemoryBlocksTest, WhatIsWantedWhileItGoesIsReservedAgain) {
  use({0, 300});
  blocks_.stop_using({0, 300});
  for (uint32_t i = 0; i < kPatience; ++i) blocks_.pass_round();
  ASSERT_EQ(blocks_.next_idle(UINT64_MAX), (MemoryRange{0, 300}));
  EXPECT_FALSE(blocks_.has_memory({0, 300}));
  blocks_.use({100, 50});
  EXPECT_EQ(blocks_.next_wanted(UINT64_MAX), (MemoryRange{100, 100}));
  blocks_.on_given_back({0, 300});
  EXPECT_EQ(blocks_.taken_bytes(), 100u);
  EXPECT_EQ(blocks_.next_wanted(UINT64_MAX), (MemoryRange{100, 100}));
  blocks_.on_reserved({100, 100});
  EXPECT_TRUE(blocks_.has_memory({100, 100}));
}

TEST_F(MemoryBlocksTest, SomeOfItStays) {
  MemoryBlocks blocks(1000, kBlock, 250);
  blocks.use({0, 600});
  reserve_all(blocks);
  blocks.stop_using({0, 600});
  EXPECT_TRUE(blocks.may_give_back());
  for (uint32_t i = 0; i < kPatience; ++i) blocks.pass_round();
  EXPECT_EQ(blocks.next_idle(UINT64_MAX), (MemoryRange{300, 300}));
  blocks.on_given_back({300, 300});
  EXPECT_FALSE(blocks.next_idle(UINT64_MAX).has_value());
  EXPECT_EQ(blocks.taken_bytes(), 300u);
  EXPECT_EQ(blocks.next_idle(UINT64_MAX, true), (MemoryRange{0, 300})) << "at once: all of it";
}

TEST_F(MemoryBlocksTest, AtOnceTakesNoPatience) {
  use({0, 300});
  blocks_.stop_using({100, 200});
  EXPECT_FALSE(blocks_.next_idle(UINT64_MAX).has_value());
  ASSERT_EQ(blocks_.next_idle(UINT64_MAX, true), (MemoryRange{100, 200}));
  blocks_.on_given_back({100, 200});
  use({100, 200});
  blocks_.pass_round();
  EXPECT_EQ(blocks_.patience_rounds(), kPatience) << "it did not go for being idle";
}

TEST_F(MemoryBlocksTest, WithoutMemoryWhatNobodyUsesIsWantedNoMore) {
  use({0, 100});
  blocks_.use({100, 200});
  blocks_.use({400, 100});
  blocks_.stop_using({100, 200});
  blocks_.drop_wanted();
  EXPECT_EQ(blocks_.taken_bytes(), 200u);
  EXPECT_EQ(blocks_.next_wanted(UINT64_MAX), (MemoryRange{400, 100}));
  EXPECT_TRUE(blocks_.has_memory({0, 100}));
}

// However long a loop takes for a step: it takes again what went back a few times at most.
TEST_F(MemoryBlocksTest, ALoopsMemoryStaysAfterAFewSteps) {
  for (const uint32_t rounds_of_step : {1u, 2u, 3u, 7u, 20u}) {
    MemoryBlocks blocks(1000, kBlock, 0);
    int given_back = 0;
    int last_given_back = -1;
    for (int step = 0; step < 40; ++step) {
      blocks.use({0, 1000});
      reserve_all(blocks);
      blocks.stop_using({0, 1000});
      for (uint32_t i = 0; i < rounds_of_step; ++i) {
        blocks.pass_round();
        while (const auto idle = blocks.next_idle(UINT64_MAX)) {
          blocks.on_given_back(*idle);
          ++given_back;
          last_given_back = step;
        }
      }
    }
    EXPECT_LE(given_back, 5) << rounds_of_step;
    EXPECT_LT(last_given_back, 5) << rounds_of_step;
  }
}

TEST_F(MemoryBlocksTest, WhatIsUsedAgainMuchLaterCostsNoPatience) {
  for (int i = 0; i < 5; ++i) {
    use({0, 300});
    blocks_.stop_using({0, 300});
    EXPECT_EQ(pass_rounds(kPatience), 300u);
    pass_rounds(MemoryBlocks::kSoon * kPatience + 1);
  }
  EXPECT_EQ(blocks_.patience_rounds(), kPatience);
}

TEST_F(MemoryBlocksTest, CountsRightWhateverHappens) {
  std::mt19937 random(7);
  MemoryBlocks blocks(5000, kBlock, 300);
  std::map<uint64_t, uint64_t> extents;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t offset = random() % 50 * 100 + random() % 100;
    const uint64_t bytes = std::min<uint64_t>(1 + random() % 700, 5000 - offset);
    if (random() % 2 == 0 && !extents.contains(offset)) {
      const uint64_t before = blocks.taken_bytes();
      const uint64_t missing = blocks.missing_bytes({offset, bytes});
      blocks.use({offset, bytes});
      EXPECT_EQ(blocks.taken_bytes(), before + missing);
      reserve_all(blocks);
      EXPECT_TRUE(blocks.has_memory({offset, bytes}));
      extents.emplace(offset, bytes);
    } else if (!extents.empty()) {
      const auto extent = extents.begin();
      blocks.stop_using({extent->first, extent->second});
      extents.erase(extent);
    }
    if (random() % 50 == 0) blocks.pass_round();
    if (const auto idle = blocks.next_idle(1 + random() % 1000); idle && random() % 3 != 0) {
      blocks.on_given_back(*idle);
      EXPECT_FALSE(blocks.has_memory(*idle));
    } else if (idle) {
      blocks.on_kept(*idle);
    }
    for (const auto& [begin, size] : extents) ASSERT_TRUE(blocks.has_memory({begin, size}));
  }
  uint64_t there = 0;
  for (uint64_t at = 0; at < 5000; at += kBlock) {
    if (blocks.has_memory({at, kBlock})) there += kBlock;
  }
  EXPECT_EQ(blocks.taken_bytes(), there);
}

}  // namespace
}  // namespace braid
