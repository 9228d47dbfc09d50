// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(CheckedTest, AddsUpToTheLastNumber) {
  EXPECT_EQ((CheckedNumber(UINT64_MAX - 1) + 1).value(), UINT64_MAX);
  EXPECT_EQ((CheckedNumber(UINT64_MAX) + 1).value(), std::nullopt);
}

TEST(CheckedTest, SubtractsDownToZero) {
  EXPECT_EQ((CheckedNumber(5) - 5).value(), 0u);
  EXPECT_EQ((CheckedNumber(5) - 6).value(), std::nullopt);
}

TEST(CheckedTest, MultipliesUpToTheLastNumber) {
  EXPECT_EQ((CheckedNumber(1ull << 32) * ((1ull << 32) - 1)).value(), UINT64_MAX - UINT32_MAX);
  EXPECT_EQ((CheckedNumber(1ull << 32) * (1ull << 32)).value(), std::nullopt);
  EXPECT_EQ((CheckedNumber(0) * UINT64_MAX).value(), 0u);
}

TEST(CheckedTest, ShiftsUpToTheLastBit) {
  EXPECT_EQ((CheckedNumber(1) << 63).value(), 1ull << 63);
  EXPECT_EQ((CheckedNumber(2) << 63).value(), std::nullopt);
  EXPECT_EQ((CheckedNumber(1) << 64).value(), std::nullopt);
  EXPECT_EQ((CheckedNumber(0) << 63).value(), 0u);
}

TEST(CheckedTest, WhatHasOnceNotFittedHasNoValueAgain) {
  CheckedNumber sum = UINT64_MAX;
  sum += 3;
  EXPECT_EQ((sum * 0).value(), std::nullopt);
  EXPECT_EQ((sum - sum).value(), std::nullopt);
  EXPECT_EQ((CheckedNumber(0) << sum).value(), std::nullopt);
  EXPECT_EQ(sum.value_or(7), 7u);
  EXPECT_FALSE(sum.is_at_most(UINT64_MAX));
  EXPECT_FALSE(sum.as<uint32_t>());
}

TEST(CheckedTest, ANegativeNumberHasNoValue) {
  EXPECT_EQ(CheckedNumber(-1).value(), std::nullopt);
  EXPECT_EQ(CheckedNumber(int64_t{INT64_MAX}).value(), uint64_t{INT64_MAX});
}

TEST(CheckedTest, BecomesASmallerTypeWhereItFits) {
  EXPECT_EQ(CheckedNumber(UINT32_MAX).as<uint32_t>(), UINT32_MAX);
  EXPECT_EQ((CheckedNumber(UINT32_MAX) + 1).as<uint32_t>(), std::nullopt);
  EXPECT_EQ(CheckedNumber(UINT64_MAX).as<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(CheckedNumber(256).as<uint8_t>(), std::nullopt);
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

TEST(CheckedTest, RoundsUpToTheLastMultiple) {
  EXPECT_EQ(checked_round_up(UINT64_MAX - 63, 64).value(), UINT64_MAX - 63);
  EXPECT_EQ(checked_round_up(UINT64_MAX - 62, 64).value(), std::nullopt);
  EXPECT_EQ(checked_round_up(CheckedNumber(UINT64_MAX) + 1, 64).value(), std::nullopt);
}

TEST(CheckedDeathTest, RoundsUpNoNumberThatWasNotChecked) {
  EXPECT_EQ(round_up(UINT64_MAX - 63, 64), UINT64_MAX - 63);
  EXPECT_DEATH((void)round_up(UINT64_MAX - 62, 64), "was checked");
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
