// SPDX-License-Identifier: Apache-2.0
#include "net/job_queue.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint32_t kUrgentChunkBytes = 100'000;
// So many chunks go before a chunk that they overtake.
constexpr uint64_t kOvertakers =
    JobQueue::kOvertakingBytesMax / (kUrgentChunkBytes + sizeof(proto::ChunkHeader)) + 1;

constexpr uint64_t kPopsMax = 1'000'000;  // for ever

QueuedChunk urgent_chunk(uint64_t urgency, uint64_t number = 0,
                         uint32_t bytes = kUrgentChunkBytes) {
  QueuedChunk made;
  made.chunk.header.bytes = bytes;
  made.chunk.urgency = urgency;
  made.chunk.header.step = number;
  return made;
}

// Pops; of each chunk that goes another one of the same urgency comes. How many went before one of
// `urgency`.
uint64_t pops_until(JobQueue& queue, uint64_t urgency) {
  uint64_t pops = 0;
  for (; pops < kPopsMax; ++pops) {
    QueuedChunk next = queue.pop_front();
    if (next.chunk.urgency == urgency) break;
    queue.push_back(std::move(next));
  }
  return pops;
}

TEST(JobQueue, TheMostUrgentGoesFirstAndEquallyUrgentOnesInTheirOrder) {
  JobQueue queue;
  for (uint64_t number = 0; number < 12; ++number)
    queue.push_back(urgent_chunk(number * 7 % 4, number, 10));
  std::vector<uint64_t> numbers;
  while (!queue.empty()) {
    const uint64_t announced = queue.front().chunk.header.step;
    numbers.push_back(queue.pop_front().chunk.header.step);
    EXPECT_EQ(numbers.back(), announced);
  }
  EXPECT_EQ(numbers, (std::vector<uint64_t>{1, 5, 9, 2, 6, 10, 3, 7, 11, 0, 4, 8}));
}

TEST(JobQueue, AChunkThatComesBackGoesBeforeMoreUrgentOnes) {
  JobQueue queue;
  queue.push_back(urgent_chunk(1, 1));
  queue.push_back(urgent_chunk(9, 2));
  queue.push_front(urgent_chunk(0, 4));
  queue.push_front(urgent_chunk(0, 3));
  for (const uint64_t expected : {3, 4, 2, 1})
    EXPECT_EQ(queue.pop_front().chunk.header.step, expected);
  EXPECT_TRUE(queue.empty());
}

TEST(JobQueue, LosesNothingAndKeepsTheOrderWithinAnUrgency) {
  JobQueue queue;
  std::mt19937 random(5);
  std::map<uint64_t, uint64_t> pushed;
  std::map<uint64_t, uint64_t> popped;
  const auto pop = [&] {
    const QueuedChunk next = queue.pop_front();
    ASSERT_EQ(next.chunk.header.step, popped[next.chunk.urgency]++);
  };
  for (int i = 0; i < 100'000; ++i) {
    // Grows for a while, then empties.
    if (random() % 16 < (i / 5000 % 2 == 0 ? 9u : 6u)) {
      const uint64_t urgency = random() % 30;
      queue.push_back(urgent_chunk(urgency, pushed[urgency]++, random() % 200'000));
    } else if (!queue.empty()) {
      pop();
    }
    if (HasFatalFailure()) return;
  }
  while (!queue.empty() && !HasFatalFailure()) pop();
  EXPECT_EQ(popped, pushed);
}

TEST(JobQueue, WhatIsUrgentWithoutEndHoldsNothingUpForEver) {
  JobQueue queue;
  queue.push_back(urgent_chunk(9));
  for (int i = 0; i < 3; ++i) queue.push_back(urgent_chunk(1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pops_until(queue, 1), kOvertakers);
}

TEST(JobQueue, ThoseThatAreOvertakenTakeTurns) {
  JobQueue queue;
  queue.push_back(urgent_chunk(9));
  for (const uint64_t urgency : {3, 1, 2}) {
    for (int i = 0; i < 2; ++i) queue.push_back(urgent_chunk(urgency));
  }
  std::vector<uint64_t> order;
  for (uint64_t pops = 0; pops < kPopsMax && order.size() < 6; ++pops) {
    QueuedChunk next = queue.pop_front();
    if (next.chunk.urgency == 9) {
      queue.push_back(std::move(next));
    } else {
      order.push_back(next.chunk.urgency);
    }
  }
  EXPECT_EQ(order, (std::vector<uint64_t>{3, 1, 2, 3, 1, 2}));
}

TEST(JobQueue, ChunksWithoutBytesOvertakeNoMoreThanOthers) {
  JobQueue queue;
  queue.push_back(urgent_chunk(9, 0, 0));
  queue.push_back(urgent_chunk(1));
  EXPECT_LE(pops_until(queue, 1), JobQueue::kOvertakingBytesMax / sizeof(proto::ChunkHeader));
}

TEST(JobQueue, WhatWaitedForNobodyHasOvertakenNobody) {
  JobQueue queue;
  queue.push_back(urgent_chunk(9));
  for (uint64_t i = 0; i < 3 * kOvertakers; ++i) queue.push_back(queue.pop_front());
  queue.push_back(urgent_chunk(1));
  EXPECT_EQ(pops_until(queue, 1), kOvertakers);
}

}  // namespace
}  // namespace braid
