// SPDX-License-Identifier: Apache-2.0
#include "ipc/extent_allocator.h"

#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(ExtentAllocatorTest, AlignsSmallToCacheLinesAndLargeToPages) {
  ExtentAllocator extents(1 << 20);
  EXPECT_EQ(extents.allocate(1), 0u);
  EXPECT_EQ(extents.allocate(65), 64u);
  EXPECT_EQ(extents.allocate(65537), 4096u);
  EXPECT_EQ(extents.allocate(0), 192u);
  EXPECT_EQ(extents.size_of(0), 64u);
  EXPECT_EQ(extents.size_of(4096), 17 * 4096u);
  EXPECT_EQ(extents.size_of(4097), std::nullopt);
}

TEST(ExtentAllocatorTest, GivesBackTheLowestGapFirst) {
  ExtentAllocator extents(1 << 20);
  const auto a = extents.allocate(64);
  const auto b = extents.allocate(64);
  const auto c = extents.allocate(64);
  ASSERT_TRUE(a && b && c);
  const uint64_t high_water = extents.high_water();
  EXPECT_TRUE(extents.release(*c));
  EXPECT_TRUE(extents.release(*a));
  EXPECT_EQ(extents.allocate(64), a);
  EXPECT_EQ(extents.allocate(64), c);
  EXPECT_EQ(extents.high_water(), high_water);
}

TEST(ExtentAllocatorTest, RefusesWhatWasNotGivenOut) {
  ExtentAllocator extents(1 << 20);
  const auto a = extents.allocate(128);
  ASSERT_TRUE(a.has_value());
  EXPECT_FALSE(extents.release(*a + 64));
  EXPECT_TRUE(extents.release(*a));
  EXPECT_FALSE(extents.release(*a));
}

TEST(ExtentAllocatorTest, SizesBeyondTheCapacityDoNotOverflow) {
  ExtentAllocator extents(4096);
  EXPECT_EQ(extents.allocate(UINT64_MAX), std::nullopt);
  EXPECT_EQ(extents.allocate(4097), std::nullopt);
  ExtentAllocator none(0);
  EXPECT_EQ(none.allocate(0), std::nullopt);
}

// Against a model: whatever is done, extents never overlap, and everything that was given back can
// be had again.
TEST(ExtentAllocatorTest, RandomUseAgainstAModel) {
  constexpr uint64_t kModelCapacity = 1 << 20;
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    std::mt19937 random(seed);
    ExtentAllocator extents(kModelCapacity);
    std::map<uint64_t, uint64_t> model;  // offset → bytes asked for
    for (int i = 0; i < 5000; ++i) {
      if (random() % 2 == 0 || model.empty()) {
        const uint64_t bytes = random() % 4 == 0 ? random() % 200'000 : random() % 2000;
        const auto offset = extents.allocate(bytes);
        if (!offset) {
          ASSERT_LT(extents.largest_gap(), bytes + 2 * ExtentAllocator::kLargeAlignment);
          continue;
        }
        ASSERT_EQ(*offset % (bytes > ExtentAllocator::kLargeBytes ? 4096 : 64), 0u);
        ASSERT_LE(*offset + bytes, kModelCapacity);
        ASSERT_LE(*offset + bytes, extents.high_water());
        const auto next = model.lower_bound(*offset);
        const bool meets_next = next != model.end() && *offset + bytes > next->first;
        const bool meets_previous =
            next != model.begin() && std::prev(next)->first + std::prev(next)->second > *offset;
        ASSERT_FALSE(meets_next || meets_previous)
            << "extent at " << *offset << " with " << bytes << " bytes";
        model[*offset] = std::max<uint64_t>(bytes, 1);
      } else {
        auto victim = model.begin();
        std::advance(victim, random() % model.size());
        ASSERT_TRUE(extents.release(victim->first));
        model.erase(victim);
      }
      ASSERT_EQ(extents.extents(), model.size());
    }
    for (const auto& [offset, bytes] : model) ASSERT_TRUE(extents.release(offset));
    EXPECT_EQ(extents.used(), 0u);
    EXPECT_EQ(extents.largest_gap(), kModelCapacity);
  }
}

}  // namespace
}  // namespace braid
