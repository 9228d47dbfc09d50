// SPDX-License-Identifier: Apache-2.0
#include "loop/door.h"

#include <map>
#include <thread>

#include "base/clock.h"
#include "loop_testing.h"

namespace braid {
namespace {

class DoorTest : public testing::LoopTest {};

TEST_F(DoorTest, RefusesWhatIsOverItsCapacityButNoUnboundedMessage) {
  std::vector<int> got;
  Door<int> door(*loop_, 1, [&](int& message) { got.push_back(message); });
  EXPECT_TRUE(door.send(1));
  door.send_unbounded(2);
  EXPECT_FALSE(door.send(3));
  door.send_unbounded(4);
  run_until([&] { return got.size() == 3; });
  EXPECT_TRUE(door.send(5));
  run_until([&] { return got.size() == 4; });
  EXPECT_EQ(got, (std::vector<int>{1, 2, 4, 5}));
}

TEST_F(DoorTest, DrainedByHandThereIsNothingLeftForTheLoop) {
  std::vector<int> got;
  Door<int> door(*loop_, 10, [&](int& message) { got.push_back(message); });
  door.drain();
  EXPECT_TRUE(got.empty());
  ASSERT_TRUE(door.send(1));
  ASSERT_TRUE(door.send(2));
  door.drain();
  EXPECT_EQ(got, (std::vector<int>{1, 2}));
  run_rounds();
  EXPECT_EQ(got.size(), 2u);
  ASSERT_TRUE(door.send(3));  // and it still wakes the loop
  run_until([&] { return got.size() == 3; });
}

// More than a door handles in one round.
void take_long() {
  const uint64_t begin = SystemClock().now_ns();
  while (SystemClock().now_ns() - begin < Door<int>::kHandleNsMax) {
  }
}

TEST_F(DoorTest, MessagesThatTakeLongLetOthersHaveTheirTurnInBetween) {
  std::vector<int> turns;
  Door<int> door(*loop_, 10, [&](int& message) {
    turns.push_back(message);
    loop_->defer([&turns, message] { turns.push_back(-message); });
    take_long();
  });
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(door.send(i));
  run_until([&] { return turns.size() == 6; });
  EXPECT_EQ(turns, (std::vector<int>{1, -1, 2, -2, 3, -3}));
}

TEST_F(DoorTest, WhatComesWhileSomeIsLeftComesAfterIt) {
  std::vector<int> got;
  std::unique_ptr<Door<int>> door;
  door = std::make_unique<Door<int>>(*loop_, 10, [&](int& message) {
    got.push_back(message);
    if (message < 4) {
      // After the wake-up of the first ones, and while they are not all handled.
      EXPECT_TRUE(door->send(message + 10));
    }
    take_long();
  });
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(door->send(i));
  run_until([&] { return got.size() == 6; });
  EXPECT_EQ(got, (std::vector<int>{1, 2, 3, 11, 12, 13}));
  ASSERT_TRUE(door->send(20));
  run_until([&] { return got.size() == 7; });
  EXPECT_EQ(got.back(), 20);
}

TEST_F(DoorTest, TheLoopSleepsAgainWhenNothingIsLeft) {
  int got = 0;
  Door<int> door(*loop_, 10, [&](int&) {
    ++got;
    take_long();
  });
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(door.send(i));
  run_until([&] { return got == 3; });
  run_rounds();
  EXPECT_NE(uv_backend_timeout(loop_->uv()), 0);
}

TEST_F(DoorTest, DrainedByHandItsOwnRestComesFirst) {
  std::vector<int> got;
  bool is_drained = false;
  std::unique_ptr<Door<int>> door;
  door = std::make_unique<Door<int>>(*loop_, 10, [&](int& message) {
    got.push_back(message);
    take_long();
    if (message != 1) return;
    loop_->defer([&] {
      EXPECT_EQ(got, (std::vector<int>{1}));
      EXPECT_TRUE(door->send(4));
      door->drain();
      is_drained = true;
      EXPECT_EQ(got, (std::vector<int>{1, 2, 3, 4}));
    });
  });
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(door->send(i));
  run_until([&] { return is_drained; });
  run_rounds();
  EXPECT_EQ(got.size(), 4u);
  ASSERT_TRUE(door->send(5));
  run_until([&] { return got.size() == 5; });
}

TEST_F(DoorTest, WhatIsLeftInADoorThatGoesIsDropped) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = held;
  int calls = 0;
  std::unique_ptr<Door<std::shared_ptr<int>>> door;
  door = std::make_unique<Door<std::shared_ptr<int>>>(*loop_, 10, [&](std::shared_ptr<int>&) {
    ++calls;
    take_long();
    loop_->defer([&] { door.reset(); });
  });
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(door->send(held));
  held.reset();
  run_until([&] { return door == nullptr; });
  EXPECT_TRUE(alive.expired());
  run_rounds();
  EXPECT_EQ(calls, 1);
}

class DoorThreadsTest : public DoorTest, public ::testing::WithParamInterface<size_t> {};

TEST_P(DoorThreadsTest, EveryThreadsMessagesComeAllAndInItsOrder) {
  constexpr int kThreads = 4;
  constexpr int kMessages = 5000;
  struct Message {
    int thread;
    int number;
  };
  std::map<int, std::vector<int>> got;
  size_t total = 0;
  Door<Message> door(*loop_, GetParam(), [&](Message& message) {
    EXPECT_TRUE(loop_->is_in_loop());
    got[message.thread].push_back(message.number);
    if (++total == kThreads * kMessages) loop_->stop();
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&door, t] {
      for (int i = 0; i < kMessages;) {
        if (door.send({t, i})) {
          ++i;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  run();
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(got.size(), static_cast<size_t>(kThreads));
  for (const auto& [thread, numbers] : got) {
    ASSERT_EQ(numbers.size(), static_cast<size_t>(kMessages));
    for (int i = 0; i < kMessages; ++i) ASSERT_EQ(numbers[static_cast<size_t>(i)], i);
  }
}

// A few, and more than are handled in one round.
INSTANTIATE_TEST_SUITE_P(Capacity, DoorThreadsTest, ::testing::Values(64, 1 << 18));

}  // namespace
}  // namespace braid
