// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "bench/delay_line/losses.h"

namespace braid::delay_line {
namespace {

using Ranges = std::vector<PacketRange>;

TEST(DelayLineLosses, NothingIsLostUnlessWanted) {
  Losses losses(0, 1);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(losses.arriving(45), (Ranges{{0, 45}}));
}

TEST(DelayLineLosses, TheShareOfLostPacketsIsTheSameInLargeAndSmallFrames) {
  for (const uint32_t packets : {1u, 7u, 45u}) {
    Losses losses(10, 1);
    uint64_t sent = 0;
    uint64_t arrived = 0;
    while (sent < 200'000) {
      sent += packets;
      for (const PacketRange& range : losses.arriving(packets)) arrived += range.end - range.begin;
    }
    const double lost = 1 - static_cast<double>(arrived) / static_cast<double>(sent);
    EXPECT_NEAR(lost, 0.10, 0.005) << packets;
  }
}

TEST(DelayLineLosses, RangesAreInOrderAndNeverEmpty) {
  Losses losses(40, 3);
  for (int i = 0; i < 1000; ++i) {
    uint32_t at = 0;
    for (const PacketRange& range : losses.arriving(45)) {
      EXPECT_TRUE(range.begin == 0 || range.begin > at);
      EXPECT_LT(range.begin, range.end);
      at = range.end;
    }
    EXPECT_LE(at, 45u);
  }
}

TEST(DelayLineLosses, TheSeedDecides) {
  Losses one(20, 5);
  Losses same(20, 5);
  Losses other(20, 6);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const Ranges ranges = one.arriving(10);
    EXPECT_EQ(ranges, same.arriving(10));
    differs |= ranges != other.arriving(10);
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace braid::delay_line
