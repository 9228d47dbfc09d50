// SPDX-License-Identifier: Apache-2.0
#include "net/chunk_queue.h"

#include <deque>
#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

QueuedChunk chunk(uint64_t number) {
  QueuedChunk made;
  made.chunk.header.step = number;
  return made;
}

TEST(ChunkQueue, BehavesLikeADequeThroughGrowthAndWrapping) {
  ChunkQueue queue;
  std::deque<uint64_t> expected;
  std::mt19937 random(11);
  for (uint64_t i = 0; i < 20000; ++i) {
    const auto choice = random() % 100;
    if (choice < 45) {
      queue.push_back(chunk(i));
      expected.push_back(i);
    } else if (choice < 60) {
      queue.push_front(chunk(i));
      expected.push_front(i);
    } else if (!expected.empty()) {
      ASSERT_EQ(queue.pop_front().chunk.header.step, expected.front());
      expected.pop_front();
    }
    ASSERT_EQ(queue.size(), expected.size());
    ASSERT_EQ(queue.empty(), expected.empty());
  }
  EXPECT_GT(expected.size(), 0u);
}

}  // namespace
}  // namespace braid
