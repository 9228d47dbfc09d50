// SPDX-License-Identifier: Apache-2.0
// Parts of operations that this node has yet to submit.
#include "collective/early_chunks.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/checked.h"

namespace braid {
namespace {

constexpr uint64_t kJob = 7;
constexpr NodeId kPeer = 20;

class EarlyChunksTest : public ::testing::Test {
 protected:
  EarlyChunksTest() { early_.begin_job(kJob); }

  std::optional<ChunkVerdict> hear(NodeId from, uint64_t step, uint32_t chunk = 0) {
    proto::ChunkHeader header{};
    header.phase = static_cast<uint8_t>(proto::Phase::Direct);
    header.job_key = kJob;
    header.tensor = 1;
    header.step = step;
    header.chunk = chunk;
    header.bytes = static_cast<uint32_t>(part_.size());
    return early_.keep(from, header, part_);
  }

  std::vector<std::pair<uint64_t, NodeId>> overruns_;
  EarlyChunks early_{[this](uint64_t job, NodeId from) { overruns_.emplace_back(job, from); }};
  std::vector<uint8_t> part_ = std::vector<uint8_t>(1 << 20);
};

TEST_F(EarlyChunksTest, WhatHonestNodesSendAlwaysHasRoom) {
  for (uint32_t nodes = 2; nodes <= 8; ++nodes) {
    const uint64_t others = nodes - 1;
    const uint64_t operations = kEarlyInFlight * others;
    EXPECT_LE(operations * others * direct_bytes_max(nodes), EarlyChunks::kBytesMax);
    EXPECT_GE(direct_bytes_max(nodes), 64u << 10) << nodes;
  }
}

// Of one segment, its share of the bytes, rounded up to 64.
TEST_F(EarlyChunksTest, WhatGoesByTwoHopsHasRoomAsWell) {
  for (uint32_t nodes = 3; nodes <= 32; ++nodes) {
    const uint64_t others = nodes - 1;
    const uint64_t most = early_two_hops_bytes_max(nodes);
    const uint64_t segment = round_up(divide_up(most, nodes), 64);
    EXPECT_LE(kEarlyInFlight * others * others * segment, EarlyChunks::kBytesMax) << nodes;
    const uint64_t least = early_two_hops_bytes_min(nodes);
    EXPECT_LT(least, most) << nodes;
    for (uint64_t bytes = least; bytes < least + 64 * nodes; ++bytes) {
      ASSERT_GT(bytes, others * round_up(divide_up(bytes, nodes), 64))
          << "the last segment is empty: " << nodes << " nodes, " << bytes << " bytes";
    }
  }
}

TEST_F(EarlyChunksTest, InALargeClusterNothingGoesEarlyByTwoHops) {
  for (const uint32_t nodes : {258U, 1000U, 65'536U}) {
    EXPECT_EQ(early_two_hops_bytes_max(nodes), 0u) << nodes;
    EXPECT_GT(early_two_hops_bytes_min(nodes), 0u);
  }
}

// Dropped, though it was acknowledged, a part would never come again and the job would hang.
TEST_F(EarlyChunksTest, APartThatHasNoRoomEndsTheJob) {
  uint64_t step = 0;
  for (; step < EarlyChunks::kBytesMax / part_.size(); ++step)
    ASSERT_EQ(hear(kPeer, step), ChunkVerdict::Taken) << step;
  EXPECT_TRUE(overruns_.empty());
  EXPECT_EQ(hear(kPeer, step), std::nullopt);
  EXPECT_EQ(hear(kPeer, step + 1), std::nullopt);
  EXPECT_EQ(overruns_, (std::vector<std::pair<uint64_t, NodeId>>{{kJob, kPeer}}))
      << "told once per job";
}

TEST_F(EarlyChunksTest, APartThatComesTwiceTakesNoRoom) {
  ASSERT_EQ(hear(kPeer, 1), ChunkVerdict::Taken);
  for (uint64_t i = 0; i < 2 * EarlyChunks::kBytesMax / part_.size(); ++i)
    ASSERT_EQ(hear(kPeer, 1), ChunkVerdict::Duplicate);
  EXPECT_EQ(hear(kPeer + 1, 1), ChunkVerdict::Taken) << "another node's is another one";
  EXPECT_TRUE(overruns_.empty());
}

TEST_F(EarlyChunksTest, APartMayComeInSeveralChunks) {
  const OperationKey key{kJob, 1, 5};
  for (uint32_t chunk = 0; chunk < 3; ++chunk)
    EXPECT_EQ(hear(kPeer, 5, chunk), ChunkVerdict::Taken) << chunk;
  EXPECT_EQ(hear(kPeer, 5, 1), ChunkVerdict::Duplicate);
  EXPECT_EQ(early_.take(key).size(), 3u);
  EXPECT_TRUE(early_.take(key).empty());
}

TEST_F(EarlyChunksTest, AnAbortedJobHasRoomAgain) {
  for (uint64_t step = 0; step <= EarlyChunks::kBytesMax / part_.size(); ++step)
    (void)hear(kPeer, step);
  ASSERT_EQ(overruns_.size(), 1u);
  early_.forget_job(kJob);
  EXPECT_EQ(hear(kPeer, 0), std::nullopt) << "it is not known any more";
  early_.begin_job(kJob);
  EXPECT_EQ(hear(kPeer, 0), ChunkVerdict::Taken);
}

}  // namespace
}  // namespace braid
