// SPDX-License-Identifier: Apache-2.0
#include "job/known_pages.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kPage = 4096;

TEST(KnownPagesTest, NothingIsKnownAtFirst) {
  const KnownPages known;
  EXPECT_FALSE(known.has(0, 1));
  EXPECT_FALSE(known.has(100 * kPage, 1));
  EXPECT_TRUE(known.has(0, 0)) << "there is nothing to know";
}

TEST(KnownPagesTest, AByteOfAPageIsThePage) {
  KnownPages known;
  known.add(3 * kPage - 1, 2);
  EXPECT_TRUE(known.has(2 * kPage, 2 * kPage));
  EXPECT_FALSE(known.has(2 * kPage - 1, 2));
  EXPECT_FALSE(known.has(4 * kPage - 1, 2));
}

TEST(KnownPagesTest, RangesEndInAnyWord) {
  for (const uint64_t first : {0, 1, 63, 64, 65, 127}) {
    for (const uint64_t pages : {1, 2, 63, 64, 65, 128, 200}) {
      KnownPages known;
      known.add(first * kPage, pages * kPage);
      EXPECT_TRUE(known.has(first * kPage, pages * kPage)) << first << ' ' << pages;
      EXPECT_FALSE(known.has(first * kPage, pages * kPage + 1)) << first << ' ' << pages;
      EXPECT_FALSE(first > 0 && known.has(first * kPage - 1, 2)) << first << ' ' << pages;
    }
  }
}

TEST(KnownPagesTest, AllOfItHasToBeKnown) {
  KnownPages known;
  known.add(0, 10 * kPage);
  known.add(11 * kPage, 10 * kPage);
  EXPECT_FALSE(known.has(0, 21 * kPage));
  known.add(10 * kPage, 1);
  EXPECT_TRUE(known.has(0, 21 * kPage));
}

// A trainer decides how large his arenas are, and where in them his inputs lie.
TEST(KnownPagesTest, OfWhatLiesFarBehindNothingIsKept) {
  KnownPages known;
  constexpr uint64_t kFar = 1ull << 47;
  known.add(kFar, kPage);
  EXPECT_FALSE(known.has(kFar, kPage));
  known.add((1ull << 30) - kPage, 2 * kPage);
  EXPECT_TRUE(known.has((1ull << 30) - kPage, kPage));
  EXPECT_FALSE(known.has(1ull << 30, kPage));
}

}  // namespace
}  // namespace braid
