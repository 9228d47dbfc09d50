// SPDX-License-Identifier: Apache-2.0
#include "codec/dither.h"

#include <bit>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace braid::test {
namespace {

constexpr uint32_t kDraws = 1 << 16;

TEST(Dither, every_bit_is_set_half_of_the_time) {
  const auto dither = Dither::make(1, 2, 3, 0);
  std::vector<int> set(32);
  for (uint32_t i = 0; i < kDraws; ++i) {
    const uint32_t bits = dither.bits(i);
    for (size_t bit = 0; bit < set.size(); ++bit) set[bit] += static_cast<int>((bits >> bit) & 1);
  }
  for (size_t bit = 0; bit < set.size(); ++bit) {
    EXPECT_NEAR(set[bit], kDraws / 2, 5 * 0.5 * std::sqrt(kDraws)) << "bit " << bit;
  }
}

TEST(Dither, numbers_are_even_over_their_range) {
  const auto dither = Dither::make(7, 0, 0, 123456);
  std::vector<double> buckets(256);
  for (uint32_t i = 0; i < kDraws; ++i) ++buckets[dither.bits(i) >> 24];
  double chi_squared = 0;
  const double expected = static_cast<double>(kDraws) / 256;
  for (const double count : buckets) {
    chi_squared += (count - expected) * (count - expected) / expected;
  }
  EXPECT_NEAR(chi_squared, 255, 5 * std::sqrt(2.0 * 255));
}

// Half of the bits differ between neighbours, steps, streams and seeds.
TEST(Dither, what_is_near_is_not_alike) {
  const auto expect_unlike = [](const Dither& a, const Dither& b, uint32_t shift) {
    int differ = 0;
    for (uint32_t i = 0; i < kDraws; ++i) differ += std::popcount(a.bits(i) ^ b.bits(i + shift));
    EXPECT_NEAR(differ, 16.0 * kDraws, 5 * std::sqrt(32.0 * kDraws) / 2);
  };
  const auto dither = Dither::make(1, 1, 1, 0);
  expect_unlike(dither, dither, 1);
  expect_unlike(dither, dither, 16);
  expect_unlike(dither, dither, 4096);
  expect_unlike(dither, Dither::make(1, 1, 2, 0), 0);
  expect_unlike(dither, Dither::make(1, 2, 1, 0), 0);
  expect_unlike(dither, Dither::make(2, 1, 1, 0), 0);
}

TEST(Dither, a_number_belongs_to_its_element) {
  const auto whole = Dither::make(5, 6, 7, 1000);
  const auto later = Dither::make(5, 6, 7, 1000 + 321);
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(whole.bits(321 + i), later.bits(i));
    EXPECT_EQ(whole.bits(321 + i), whole.after(321).bits(i));
  }
}

// Written down, so that a change is noticed: it would change what jobs compute.
TEST(Dither, numbers_are_the_same_for_ever) {
  EXPECT_EQ(Dither::make(0, 0, 0, 0).bits(0), 2151625815u);
  EXPECT_EQ(Dither::make(1, 2, 3, 4).bits(5), 2833208480u);
}

}  // namespace
}  // namespace braid::test
