// SPDX-License-Identifier: Apache-2.0
#include "engine/stream_slots.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(StreamSlots, TheLowestFreeOneIsTaken) {
  StreamSlots slots;
  for (uint32_t i = 0; i < 200; ++i) EXPECT_EQ(slots.take(), i);
  EXPECT_EQ(slots.taken(), 200u);
  slots.give_back(150);
  slots.give_back(63);
  slots.give_back(64);
  EXPECT_EQ(slots.taken(), 197u);
  EXPECT_EQ(slots.take(), 63u);
  EXPECT_EQ(slots.take(), 64u);
  EXPECT_EQ(slots.take(), 150u);
  EXPECT_EQ(slots.take(), 200u);
}

TEST(StreamSlotsDeathTest, WhatWasNotTakenCannotBeGivenBack) {
  StreamSlots slots;
  EXPECT_DEATH(slots.give_back(0), "had not taken");
  EXPECT_EQ(slots.take(), 0u);
  EXPECT_DEATH(slots.give_back(1), "had not taken");
}

}  // namespace
}  // namespace braid
