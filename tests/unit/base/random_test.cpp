// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(RandomTest, NumbersDifferAndAreNeverZero) {
  std::set<uint64_t> numbers;
  for (int i = 0; i < 100; ++i) numbers.insert(random_u64());
  EXPECT_EQ(numbers.size(), 100u);
  EXPECT_FALSE(numbers.contains(0));
}

TEST(RandomTest, FillsEveryPart) {
  std::vector<uint8_t> bytes(4096);
  fill_random(bytes);
  for (size_t begin = 0; begin < bytes.size(); begin += 64) {
    const auto part = bytes.begin() + static_cast<ptrdiff_t>(begin);
    EXPECT_TRUE(std::any_of(part, part + 64, [](uint8_t byte) { return byte != 0; })) << begin;
  }
}

}  // namespace
}  // namespace braid
