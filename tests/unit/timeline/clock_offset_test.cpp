// SPDX-License-Identifier: Apache-2.0
#include "timeline/clock_offset.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kOffset = 1'000'000'000'000;

// The ways there and back take so long.
void exchange(ClockOffset& clock, uint64_t at, uint64_t there, uint64_t back, int64_t offset) {
  const uint64_t received = at + there + static_cast<uint64_t>(offset);
  clock.add(at, received, received + 50, at + there + 50 + back);
}

TEST(ClockOffset, OfEqualWaysIsExact) {
  ClockOffset clock;
  exchange(clock, 5000, 100, 100, kOffset);
  EXPECT_EQ(clock.offset_ns(), static_cast<int64_t>(kOffset));
  EXPECT_LE(clock.error_ns(), 101u);
  EXPECT_EQ(clock.there(7), 7 + kOffset);
}

TEST(ClockOffset, LiesWithinItsErrorWhateverTheWaysTake) {
  for (const uint64_t there : {1, 10, 333, 100'000}) {
    for (const uint64_t back : {1, 47, 999'999}) {
      for (const int64_t offset :
           {int64_t{0}, int64_t{-900}, int64_t{kOffset}, -int64_t{kOffset}}) {
        ClockOffset clock;
        exchange(clock, 2 * kOffset, there, back, offset);
        EXPECT_LE(static_cast<uint64_t>(std::llabs(clock.offset_ns() - offset)), clock.error_ns());
      }
    }
  }
}

TEST(ClockOffset, TheShortestRoundTripCounts) {
  ClockOffset clock;
  exchange(clock, 0, 5000, 100, 77);
  exchange(clock, 10'000, 20, 22, 77);
  exchange(clock, 20'000, 10, 4000, 77);
  EXPECT_EQ(clock.rounds(), 3u);
  EXPECT_LE(clock.error_ns(), 22u);
  EXPECT_NEAR(static_cast<double>(clock.offset_ns()), 77, 2);
}

TEST(ClockOffset, WhatCannotBeIsIgnored) {
  ClockOffset clock;
  clock.add(100, 50, 60, 99);    // got before it was asked
  clock.add(100, 60, 50, 200);   // answered before it was received
  clock.add(100, 0, 1000, 200);  // it took longer there than all in all
  EXPECT_EQ(clock.rounds(), 0u);
  EXPECT_EQ(clock.error_ns(), UINT64_MAX);
}

TEST(ClockOffset, ClocksFarApartDoNotOverflow) {
  ClockOffset clock;
  clock.add(0, UINT64_MAX / 2, UINT64_MAX / 2 + 10, 100);
  EXPECT_EQ(clock.rounds(), 1u);
  EXPECT_EQ(clock.there(0), UINT64_MAX / 2 + 10 - 55) << "half of 90 ns before it was received";
}

}  // namespace
}  // namespace braid
