// SPDX-License-Identifier: Apache-2.0
#include "levels/level_watch.h"

#include <atomic>
#include <chrono>
#include <future>

#include <gtest/gtest.h>

namespace braid::client {
namespace {

class LevelWatchTest : public testing::Test {
 protected:
  Result<bool> look() {
    ++looks_;
    if (fault_) return Status(StatusCode::Unavailable, "a fault");
    return has_work_.load();
  }
  std::string ended_for() { return ended_.get_future().get().message(); }

  std::atomic<int> looks_ = 0;
  std::atomic<bool> has_work_ = true;
  std::atomic<bool> fault_ = false;
  std::promise<Status> ended_;
  LevelWatch watch_{[this] { return look(); },
                    [this](const Status& why) { ended_.set_value(why); }};
};

TEST_F(LevelWatchTest, WhatALookFindsEndsIt) {
  watch_.begin();
  while (looks_ < 2) std::this_thread::yield();
  fault_ = true;
  EXPECT_EQ(ended_for(), "a fault");
  EXPECT_EQ(watch_.reason().message(), "a fault");
}

TEST_F(LevelWatchTest, WithoutWorkItSleepsUntilItIsWoken) {
  has_work_ = false;
  watch_.begin();
  int before = -1;
  // It looks on for a second.
  for (int same = 0; same < 20; ++same) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (looks_ != before) same = 0;
    before = looks_;
  }
  fault_ = true;
  watch_.wake();
  EXPECT_EQ(ended_for(), "a fault");
}

TEST_F(LevelWatchTest, TheFirstReasonCounts) {
  watch_.end_for(Status(StatusCode::Cancelled, "first"));
  watch_.end_for(Status(StatusCode::Cancelled, "second"));
  watch_.begin();
  EXPECT_EQ(ended_for(), "first");
  EXPECT_EQ(looks_, 0);
}

TEST_F(LevelWatchTest, StoppedItEndsWithoutAReason) {
  watch_.begin();
  watch_.stop();
  watch_.stop();
  EXPECT_TRUE(watch_.reason().is_ok());
}

}  // namespace
}  // namespace braid::client
