// SPDX-License-Identifier: Apache-2.0
#include "net/fair_queue.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

QueuedChunk chunk_of(uint64_t job_key, uint32_t bytes, uint64_t cookie = 0) {
  QueuedChunk made;
  made.chunk.header.job_key = job_key;
  made.chunk.header.bytes = bytes;
  made.chunk.cookie = cookie;
  return made;
}

// Takes chunks of `bytes` in all; what each job got.
std::map<uint64_t, uint64_t> take(FairQueue& queue, uint64_t bytes) {
  std::map<uint64_t, uint64_t> got;
  for (uint64_t taken = 0; taken < bytes;) {
    const QueuedChunk next = queue.pop_front();
    got[next.chunk.header.job_key] += next.chunk.header.bytes;
    taken += next.chunk.header.bytes;
  }
  return got;
}

TEST(FairQueue, KeepsTheOrderOfAJobAndForgetsNothing) {
  FairQueue queue;
  std::mt19937 random(5);
  std::map<uint64_t, uint64_t> pushed;
  std::map<uint64_t, uint64_t> popped;
  for (int i = 0; i < 50'000; ++i) {
    if (random() % 2 == 0) {
      const uint64_t job = 1 + random() % 5;
      queue.push_back(chunk_of(job, random() % 1000, pushed[job]++));
    } else if (!queue.empty()) {
      const uint64_t announced = queue.front().chunk.cookie;
      const QueuedChunk next = queue.pop_front();
      ASSERT_EQ(next.chunk.cookie, announced);
      ASSERT_EQ(next.chunk.cookie, popped[next.chunk.header.job_key]++);
    }
  }
  while (!queue.empty()) ++popped[queue.pop_front().chunk.header.job_key];
  EXPECT_EQ(popped, pushed);
  EXPECT_EQ(queue.bytes(), 0u);
}

TEST(FairQueue, AChunkThatComesBackGoesFirst) {
  FairQueue queue;
  queue.push_back(chunk_of(1, 10, 1));
  queue.push_back(chunk_of(1, 10, 2));
  queue.push_front(queue.pop_front());
  EXPECT_EQ(queue.pop_front().chunk.cookie, 1u);
}

TEST(FairQueue, AJobDoesNotWaitBehindAnotherOnesBacklog) {
  FairQueue queue;
  for (int i = 0; i < 1000; ++i) queue.push_back(chunk_of(1, 128'000));
  take(queue, 500 * 128'000);
  queue.push_back(chunk_of(2, 1000));
  EXPECT_EQ(take(queue, 128'000 + 1000).count(2), 1u) << "at most one chunk later";
}

TEST(FairQueue, AJobThatIsPutAsideKeepsItsChunks) {
  FairQueue queue;
  queue.push_back(chunk_of(1, 10, 1));
  queue.push_back(chunk_of(2, 10, 2));
  queue.put_aside();
  EXPECT_EQ(queue.pop_front().chunk.cookie, 2u);
  EXPECT_FALSE(queue.has_front());
  EXPECT_FALSE(queue.empty());
  queue.take_back_all();
  EXPECT_EQ(queue.pop_front().chunk.cookie, 1u);
  EXPECT_FALSE(queue.has_front());
}

TEST(FairQueue, SharesAreOfBytesNotOfChunks) {
  FairQueue queue;
  for (int i = 0; i < 10'000; ++i) {
    queue.push_back(chunk_of(1, 100'000));
    for (int k = 0; k < 10; ++k) queue.push_back(chunk_of(2, 10'000));
  }
  auto got = take(queue, 400'000'000);
  EXPECT_NEAR(static_cast<double>(got[1]), 200e6, 2e6);
}

TEST(FairQueue, AJobThatWasIdleSavesUpNothing) {
  FairQueue queue;
  queue.push_back(chunk_of(2, 1000));
  queue.pop_front();
  for (int i = 0; i < 3000; ++i) queue.push_back(chunk_of(1, 1000));
  take(queue, 1'000'000);
  for (int i = 0; i < 2000; ++i) queue.push_back(chunk_of(2, 1000));
  auto got = take(queue, 1'000'000);
  EXPECT_NEAR(static_cast<double>(got[2]), 500e3, 2e3);
}

TEST(FairQueue, ManyJobsInARowGetEqualSharesEach) {
  FairQueue queue;
  for (uint64_t job = 1; job <= 300; ++job) {
    for (int i = 0; i < 20; ++i) {
      queue.push_back(chunk_of(job, 1000));
      queue.push_back(chunk_of(job + 1000, 1000));
    }
    auto got = take(queue, 20'000);
    EXPECT_NEAR(static_cast<double>(got[job]), 10'000, 2000) << job;
    while (!queue.empty()) queue.pop_front();
  }
}

TEST(FairQueue, ChunksWithoutBytesCostSomethingToo) {
  FairQueue queue;
  for (int i = 0; i < 100'000; ++i) queue.push_back(chunk_of(1, 0));
  queue.push_back(chunk_of(2, 1000));
  queue.push_back(chunk_of(2, 1000));
  int before = 0;
  while (queue.pop_front().chunk.header.job_key != 2) ++before;
  while (queue.pop_front().chunk.header.job_key != 2) ++before;
  EXPECT_LT(before, 100);
}

}  // namespace
}  // namespace braid
