// SPDX-License-Identifier: Apache-2.0
// Memory of the input arenas that nobody uses goes back to the kernel.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "arenas.h"

namespace braid::client {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kSecond = 1'000'000'000;

class GivingBackTest : public ::testing::Test {
 protected:
  GivingBackTest() { add(0); }  // as a job does when it opens

  void add(uint64_t bytes) {
    std::unique_ptr<Arena> arena;
    EXPECT_TRUE(arenas_.make(bytes, arena).is_ok());
    made_.push_back(arena.get());
    arenas_.add(std::move(arena));
  }

  // As Registry does it: one arena more where none has room.
  ArenaPlace allocate(uint64_t bytes) {
    std::optional<ArenaPlace> place;
    EXPECT_TRUE(arenas_.allocate(bytes, place).is_ok());
    if (place) return *place;
    add(bytes);
    EXPECT_TRUE(arenas_.allocate(bytes, place).is_ok());
    return place.value();
  }
  uint64_t pages() const {
    uint64_t bytes = 0;
    for (const Arena* arena : made_) {
      struct stat info {};
      EXPECT_EQ(::fstat(arena->fd(), &info), 0);
      bytes += static_cast<uint64_t>(info.st_blocks) * 512;
    }
    return bytes;
  }
  // Seconds in which the trainer releases many results.
  void pass(uint64_t seconds) {
    for (uint64_t i = 0; i < 200 * seconds; ++i) {
      now_ns_ += kSecond / 200;
      arenas_.give_back_idle(now_ns_);
    }
  }

  Arenas arenas_{1024 * kMiB};
  std::vector<Arena*> made_;
  uint64_t now_ns_ = 1000 * kSecond;
};

TEST_F(GivingBackTest, WhatNobodyHasUsedForSomeSecondsGoesBack) {
  const ArenaPlace small = allocate(10 * kMiB);
  const ArenaPlace large = allocate(200 * kMiB);
  EXPECT_EQ(pages(), 210 * kMiB);
  pass(30);
  EXPECT_EQ(pages(), 210 * kMiB) << "it is in use";
  ASSERT_TRUE(arenas_.release(large));
  arenas_.give_back_idle(now_ns_);
  EXPECT_EQ(pages(), 210 * kMiB) << "it may be used again at once";
  pass(30);
  EXPECT_EQ(pages(), 10 * kMiB);
  arenas_.at(small)[0] = 1;
  const ArenaPlace again = allocate(200 * kMiB);
  EXPECT_EQ(again.arena, large.arena);
  EXPECT_EQ(pages(), 210 * kMiB) << "reserved before it is used";
}

TEST_F(GivingBackTest, ALittleAtATime) {
  ASSERT_TRUE(arenas_.release(allocate(16 * kMiB)));
  ASSERT_TRUE(arenas_.release(allocate(200 * kMiB)));
  uint64_t before = pages();
  for (int i = 0; i < 1000; ++i) {
    now_ns_ += kSecond;
    arenas_.give_back_idle(now_ns_);
    EXPECT_LE(before - pages(), 4 * kMiB);
    before = pages();
  }
  EXPECT_EQ(pages(), 16 * kMiB) << "the first arena stays";
}

// Who knows that a page of it was there need not ask again.
TEST_F(GivingBackTest, TheFirstArenaHasNoHoles) {
  const ArenaPlace place = allocate(16 * kMiB);
  ASSERT_EQ(place.arena, 0U);
  EXPECT_EQ(::madvise(arenas_.at(place), kMiB, MADV_REMOVE), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(pages(), 16 * kMiB);
}

TEST_F(GivingBackTest, WhatIsFreeGoesWhereItWasNoHelp) {
  const ArenaPlace kept = allocate(10 * kMiB);
  const ArenaPlace low = allocate(20 * kMiB);
  const ArenaPlace large = allocate(200 * kMiB);
  ASSERT_TRUE(arenas_.release(low));
  ASSERT_TRUE(arenas_.release(large));
  arenas_.at(kept)[10 * kMiB - 1] = 3;
  EXPECT_EQ(allocate(300 * kMiB).arena, 3U);
  EXPECT_EQ(pages(), 310 * kMiB);
  EXPECT_EQ(arenas_.at(kept)[10 * kMiB - 1], 3);
}

TEST_F(GivingBackTest, WhereMemoryIsComesBeforeWhereThereIsOnlyRoom) {
  allocate(10 * kMiB);
  const ArenaPlace large = allocate(200 * kMiB);
  ASSERT_TRUE(arenas_.release(large));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(allocate(40 * kMiB).arena, large.arena);
  EXPECT_EQ(pages(), 210 * kMiB);
  EXPECT_EQ(allocate(4 * kMiB).arena, 0U) << "only room is left";
}

TEST_F(GivingBackTest, ABufferTakesNoMoreThanItNeeds) {
  allocate(33 * kMiB);
  EXPECT_EQ(pages(), 34 * kMiB) << "in blocks of 2 MiB";
}

}  // namespace
}  // namespace braid::client
