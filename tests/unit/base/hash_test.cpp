// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <set>

#include <gtest/gtest.h>

namespace braid {
namespace {

// The published test vectors of FNV-1a.
TEST(HashTest, IsFnv1a) {
  static_assert(fnv1a64("") == 0xcbf29ce484222325ULL);
  static_assert(fnv1a64("a") == 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(fnv1a64("foobar"), 0x85944171f73967e8ULL);
}

TEST(HashTest, TakesBytesAboveSevenBitsAsTheyAre) {
  EXPECT_NE(fnv1a64("\xff"), fnv1a64("\x7f"));
  EXPECT_EQ(fnv1a64("\xff"), (0xcbf29ce484222325ULL ^ 0xff) * 0x100000001b3ULL);
}

TEST(HashTest, ASeedContinuesAHash) {
  EXPECT_EQ(fnv1a64("bar", fnv1a64("foo")), fnv1a64("foobar"));
}

TEST(HashTest, MixingKeepsNumbersApart) {
  std::set<uint64_t> mixed;
  for (uint64_t x = 0; x < 10'000; ++x) mixed.insert(mix64(x));
  EXPECT_EQ(mixed.size(), 10'000u);
}

TEST(HashTest, MixingSpreadsNeighboursOverFewPlaces) {
  int places[8] = {};
  for (uint64_t x = 1; x <= 8000; ++x) ++places[mix64(x) % 8];
  for (const int hits : places) {
    EXPECT_GT(hits, 800);
    EXPECT_LT(hits, 1200);
  }
}

}  // namespace
}  // namespace braid
