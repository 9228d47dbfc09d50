// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(CheckedTest, AddsUpToTheLastNumber) {
  EXPECT_EQ(checked_add<uint64_t>(UINT64_MAX - 1, 1), UINT64_MAX);
  EXPECT_EQ(checked_add<uint64_t>(UINT64_MAX, 1), std::nullopt);
  EXPECT_EQ(checked_add<uint8_t>(200, 55), 255);
  EXPECT_EQ(checked_add<uint8_t>(200, 56), std::nullopt);
}

TEST(CheckedTest, MultipliesUpToTheLastNumber) {
  EXPECT_EQ(checked_multiply<uint64_t>(1ull << 32, (1ull << 32) - 1), UINT64_MAX - UINT32_MAX);
  EXPECT_EQ(checked_multiply<uint64_t>(1ull << 32, 1ull << 32), std::nullopt);
  EXPECT_EQ(checked_multiply<uint64_t>(0, UINT64_MAX), 0u);
}

TEST(CheckedTest, ARangeFitsUpToTheVeryEnd) {
  EXPECT_TRUE(range_fits(0, 10, 10));
  EXPECT_TRUE(range_fits(10, 0, 10));
  EXPECT_TRUE(range_fits(4, 6, 10));
  EXPECT_FALSE(range_fits(4, 7, 10));
  EXPECT_FALSE(range_fits(11, 0, 10));
}

TEST(CheckedTest, ARangeWhoseEndOverflowsDoesNotFit) {
  EXPECT_FALSE(range_fits(UINT64_MAX, 2, 10));
  EXPECT_FALSE(range_fits(2, UINT64_MAX, 10));
}

TEST(CheckedTest, RoundsUp) {
  EXPECT_EQ(round_up(0, 64), 0u);
  EXPECT_EQ(round_up(1, 64), 64u);
  EXPECT_EQ(round_up(64, 64), 64u);
  EXPECT_EQ(round_up(65, 64), 128u);
}

TEST(CheckedTest, DividesUpWithoutOverflow) {
  EXPECT_EQ(divide_up(0, 3), 0u);
  EXPECT_EQ(divide_up(1, 3), 1u);
  EXPECT_EQ(divide_up(3, 3), 1u);
  EXPECT_EQ(divide_up(4, 3), 2u);
  EXPECT_EQ(divide_up(UINT64_MAX, 2), 1ull << 63);
}

}  // namespace
}  // namespace braid
