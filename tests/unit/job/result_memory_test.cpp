// SPDX-License-Identifier: Apache-2.0
#include "job/result_memory.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace braid {
namespace {

std::shared_ptr<ResultMemory> make(uint64_t bytes) {
  auto memory = ResultMemory::create("train", bytes, {});
  EXPECT_TRUE(memory.is_ok()) << memory.status().message();
  return std::move(memory).value();
}

TEST(ResultMemoryTest, ExtentsDoNotOverlapAndCanBeWritten) {
  const auto memory = make(1 << 20);
  EXPECT_EQ(memory->size(), 1u << 20);
  const auto first = memory->allocate(1000);
  const auto second = memory->allocate(1000);
  ASSERT_TRUE(first.is_ok());
  ASSERT_TRUE(second.is_ok());
  std::fill_n(memory->data() + *first, 1000, uint8_t{1});
  std::fill_n(memory->data() + *second, 1000, uint8_t{2});
  EXPECT_TRUE(std::all_of(memory->data() + *first, memory->data() + *first + 1000,
                          [](uint8_t b) { return b == 1; }));
  EXPECT_EQ(*second % 64, 0u);
}

TEST(ResultMemoryTest, AnEmptyResultHasAPlaceOfItsOwn) {
  const auto memory = make(1 << 20);
  const auto first = memory->allocate(0);
  const auto second = memory->allocate(0);
  ASSERT_TRUE(first.is_ok());
  ASSERT_TRUE(second.is_ok());
  EXPECT_NE(*first, *second);
  memory->free(*first);
  memory->free(*second);
}

TEST(ResultMemoryTest, ExhaustionSaysHowMuchIsInUseAndWhatToDo) {
  const auto memory = make(8192);
  const auto first = memory->allocate(4096);
  ASSERT_TRUE(first.is_ok());
  const auto refused = memory->allocate(8000);
  ASSERT_FALSE(refused.is_ok());
  EXPECT_EQ(refused.status().code(), StatusCode::ResourceExhausted);
  EXPECT_EQ(refused.status().message(),
            "8000 bytes do not fit: 4096 of 8192 bytes of results are in use; release results "
            "sooner or raise "
            "collective.result_bytes_max");
  memory->free(*first);
  EXPECT_TRUE(memory->allocate(8000).is_ok());
}

TEST(ResultMemoryTest, WhatIsFreedIsUsedAgain) {
  const auto memory = make(1ull << 30);
  const auto first = memory->allocate(6 << 20);
  ASSERT_TRUE(first.is_ok());
  memory->free(*first);
  const auto second = memory->allocate(6 << 20);
  ASSERT_TRUE(second.is_ok());
  EXPECT_EQ(*second, *first);
}

TEST(ResultMemoryTest, ReservesUpToTheEndOfASegmentThatIsNoWholeNumberOfSteps) {
  const auto memory = make((4 << 20) + 4096);
  const auto all = memory->allocate(memory->size());
  ASSERT_TRUE(all.is_ok()) << all.status().message();
  memory->data()[memory->size() - 1] = 1;
}

TEST(ResultMemoryTest, AnImpossibleSizeIsAnErrorThatNamesTheJob) {
  const auto memory = ResultMemory::create("train", 0, {});
  ASSERT_FALSE(memory.is_ok());
  EXPECT_NE(memory.status().message().find("job 'train'"), std::string::npos);
}

TEST(ResultMemoryDeathTest, FreeingTwiceIsABug) {
  const auto memory = make(8192);
  const auto extent = memory->allocate(10);
  ASSERT_TRUE(extent.is_ok());
  memory->free(*extent);
  EXPECT_DEATH(memory->free(*extent), "an extent is freed once");
}

}  // namespace
}  // namespace braid
