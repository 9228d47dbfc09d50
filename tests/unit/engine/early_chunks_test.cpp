// SPDX-License-Identifier: Apache-2.0
// Parts of operations that this node has yet to submit.
#include "engine/early_chunks.h"

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
  EarlyChunksTest() { begin(); }
  void begin() {
    early_.begin_job(kJob, [this](uint64_t bytes) {
      if (bytes > room_) return Status(StatusCode::ResourceExhausted, "no room");
      kept_bytes_ = bytes;
      return Status::ok();
    });
  }

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
  uint64_t room_ = UINT64_MAX;
  uint64_t kept_bytes_ = 0;
  Status told_;
  EarlyChunks early_{[this](uint64_t job, NodeId from, const Status& room) {
    overruns_.emplace_back(job, from);
    told_ = room;
  }};
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

// One segment has its share of the bytes, rounded up to 64.
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
  EXPECT_TRUE(told_.is_ok()) << "it is the peer's fault";
}

TEST_F(EarlyChunksTest, TheMemoryThatPartsTakeIsCounted) {
  (void)hear(kPeer, 1, 0);
  (void)hear(kPeer, 1, 1);
  (void)hear(kPeer, 1, 1);  // again
  (void)hear(kPeer, 2);
  const uint64_t each = part_.size() + EarlyChunks::kChunkCostBytes;
  EXPECT_EQ(kept_bytes_, 3 * each);
  EXPECT_EQ(early_.take({kJob, 1, 1}).size(), 2u);
  EXPECT_EQ(kept_bytes_, each);
  EXPECT_EQ(early_.take({kJob, 1, 2}).size(), 1u);
  EXPECT_EQ(kept_bytes_, 0u);
}

// One byte takes more than a byte: a peer cannot make a node keep more by sending less.
TEST_F(EarlyChunksTest, PartsWithoutBytesAreCountedToo) {
  part_.clear();
  for (uint64_t step = 0; step < 100; ++step) ASSERT_EQ(hear(kPeer, step), ChunkVerdict::Taken);
  EXPECT_EQ(kept_bytes_, 100 * EarlyChunks::kChunkCostBytes);
}

TEST_F(EarlyChunksTest, APartThatTheUserHasNoRoomForEndsTheJob) {
  room_ = part_.size() + EarlyChunks::kChunkCostBytes;
  ASSERT_EQ(hear(kPeer, 1), ChunkVerdict::Taken);
  EXPECT_EQ(hear(kPeer, 2), std::nullopt);
  EXPECT_EQ(hear(kPeer, 3), std::nullopt);
  EXPECT_EQ(overruns_, (std::vector<std::pair<uint64_t, NodeId>>{{kJob, kPeer}}));
  EXPECT_EQ(told_.message(), "no room");
  EXPECT_EQ(kept_bytes_, room_);
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
  begin();
  EXPECT_EQ(hear(kPeer, 0), ChunkVerdict::Taken);
}

}  // namespace
}  // namespace braid
