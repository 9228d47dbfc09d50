// SPDX-License-Identifier: Apache-2.0
#include "net/fair_queue.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

QueuedChunk chunk_of(uint64_t job_key, uint32_t bytes, uint64_t number = 0) {
  QueuedChunk made;
  made.chunk.header.job_key = job_key;
  made.chunk.header.bytes = bytes;
  made.chunk.header.step = number;
  return made;
}

// Takes chunks of `bytes` in all; what each job got. Jobs that are not in `weights` have 1.
std::map<uint64_t, uint64_t> take(FairQueue& queue, uint64_t bytes,
                                  const std::map<uint64_t, uint32_t>& weights = {}) {
  std::map<uint64_t, uint64_t> got;
  for (uint64_t taken = 0; taken < bytes;) {
    const auto weight = weights.find(queue.front().chunk.header.job_key);
    const QueuedChunk next = queue.pop_front(weight == weights.end() ? 1 : weight->second);
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
      const uint64_t announced = queue.front().chunk.header.step;
      const QueuedChunk next = queue.pop_front();
      ASSERT_EQ(next.chunk.header.step, announced);
      ASSERT_EQ(next.chunk.header.step, popped[next.chunk.header.job_key]++);
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
  EXPECT_EQ(queue.pop_front().chunk.header.step, 1u);
}

TEST(FairQueue, SharesAreInProportionToWeights) {
  std::mt19937 random(7);
  for (const auto& [light, heavy] : {std::pair(1u, 3u), {1u, 100u}, {7u, 30u}, {100u, 100u}}) {
    FairQueue queue;
    for (int i = 0; i < 40'000; ++i) {
      queue.push_back(chunk_of(1, 1 + random() % 100'000));
      queue.push_back(chunk_of(2, 1 + random() % 1000));
      for (int k = 0; k < 50; ++k) queue.push_back(chunk_of(2, 1000 + random() % 1000));
    }
    const double bytes = 100e6;
    auto got = take(queue, static_cast<uint64_t>(bytes), {{1, light}, {2, heavy}});
    // Headers count as well, and job 2 has more of them: 6 % of its bytes.
    EXPECT_NEAR(static_cast<double>(got[1]) / bytes, 1.0 * light / (light + heavy), 0.02) << heavy;
  }
}

TEST(FairQueue, SmallChunksOfAHeavyJobCostNoLessThanLargeOnes) {
  FairQueue queue;
  for (int i = 0; i < 200'000; ++i) {
    queue.push_back(chunk_of(1, 36));
    queue.push_back(chunk_of(2, 36));
  }
  auto got = take(queue, 36 * 100'000, {{1, 99}, {2, 100}});
  EXPECT_NEAR(static_cast<double>(got[2]) / static_cast<double>(got[1]), 100.0 / 99, 1e-3);
}

TEST(FairQueue, AWeightThatChangesHoldsFromTheNextChunkOn) {
  FairQueue queue;
  for (int i = 0; i < 10'000; ++i) {
    queue.push_back(chunk_of(1, 1000));
    queue.push_back(chunk_of(2, 1000));
  }
  take(queue, 1'000'000, {{2, 3}});
  auto got = take(queue, 1'000'000);
  EXPECT_NEAR(static_cast<double>(got[2]), 500e3, 3e3);
  got = take(queue, 1'000'000, {{1, 4}});
  EXPECT_NEAR(static_cast<double>(got[1]), 800e3, 3e3);
}

TEST(FairQueue, AJobThatWasIdleSavesUpNothing) {
  for (const uint32_t weight : {1u, 3u}) {
    FairQueue queue;
    queue.push_back(chunk_of(2, 1000));
    queue.pop_front(weight);
    for (int i = 0; i < 5000; ++i) queue.push_back(chunk_of(1, 1000));
    take(queue, 1'000'000);
    for (int i = 0; i < 5000; ++i) queue.push_back(chunk_of(2, 1000));
    auto got = take(queue, 1'000'000, {{2, weight}});
    EXPECT_NEAR(static_cast<double>(got[2]), 1e6 * weight / (weight + 1), 3e3);
  }
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
