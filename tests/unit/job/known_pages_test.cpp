// SPDX-License-Identifier: Apache-2.0
#include "job/known_pages.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kPageBytes = 4096;

TEST(KnownPagesTest, NothingIsKnownAtFirst) {
  const KnownPages known;
  EXPECT_FALSE(known.has(0, 1));
  EXPECT_FALSE(known.has(100 * kPageBytes, 1));
  EXPECT_TRUE(known.has(0, 0)) << "there is nothing to know";
}

TEST(KnownPagesTest, AByteOfAPageIsThePage) {
  KnownPages known;
  known.add(3 * kPageBytes - 1, 2);
  EXPECT_TRUE(known.has(2 * kPageBytes, 2 * kPageBytes));
  EXPECT_FALSE(known.has(2 * kPageBytes - 1, 2));
  EXPECT_FALSE(known.has(4 * kPageBytes - 1, 2));
}

TEST(KnownPagesTest, RangesEndInAnyWord) {
  for (const uint64_t first : {0, 1, 63, 64, 65, 127}) {
    for (const uint64_t pages : {1, 2, 63, 64, 65, 128, 200}) {
      KnownPages known;
      known.add(first * kPageBytes, pages * kPageBytes);
      EXPECT_TRUE(known.has(first * kPageBytes, pages * kPageBytes)) << first << ' ' << pages;
      EXPECT_FALSE(known.has(first * kPageBytes, pages * kPageBytes + 1)) << first << ' ' << pages;
      EXPECT_FALSE(first > 0 && known.has(first * kPageBytes - 1, 2)) << first << ' ' << pages;
    }
  }
}

TEST(KnownPagesTest, AllOfItHasToBeKnown) {
  KnownPages known;
  known.add(0, 10 * kPageBytes);
  known.add(11 * kPageBytes, 10 * kPageBytes);
  EXPECT_FALSE(known.has(0, 21 * kPageBytes));
  known.add(10 * kPageBytes, 1);
  EXPECT_TRUE(known.has(0, 21 * kPageBytes));
}

// A trainer decides how large his arenas are, and where in them his inputs lie.
TEST(KnownPagesTest, OfWhatLiesFarBehindNothingIsKept) {
  KnownPages known;
  constexpr uint64_t kFar = 1ull << 47;
  known.add(kFar, kPageBytes);
  EXPECT_FALSE(known.has(kFar, kPageBytes));
  known.add((1ull << 30) - kPageBytes, 2 * kPageBytes);
  EXPECT_TRUE(known.has((1ull << 30) - kPageBytes, kPageBytes));
  EXPECT_FALSE(known.has(1ull << 30, kPageBytes));
}

}  // namespace
}  // namespace braid
