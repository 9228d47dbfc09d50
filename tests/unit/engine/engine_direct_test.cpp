// SPDX-License-Identifier: Apache-2.0
// Small all-reduces that go from every node to every other one.
#include <gtest/gtest.h>

#include "engine/early_chunks.h"
#include "engine_shapes.h"

namespace braid::test {
namespace {

WorldOptions direct_options(std::vector<uint32_t> ranks_of_node, uint64_t seed) {
  WorldOptions options;
  options.ranks_of_node = std::move(ranks_of_node);
  options.io_loops = 1 + static_cast<uint32_t>(seed % 2);
  options.direct_bytes = 256;
  options.hostility.submit_pulls = seed % 3 == 0;
  return options;
}

// More than are in flight at once, and every node begins with other ones.
TEST(DirectEngine, ManyAtOnceDoNotBlockEachOther) {
  for (uint64_t seed = 1; seed <= worlds(10); ++seed) {
    EngineWorld world(direct_options({1, 1, 1}, seed), seed);
    for (uint64_t step = 0; step < 6 * kEarlyInFlight; ++step)
      world.add({Collective::AllReduce, DataType::Int32, Reduction::Sum, 3, 0, 1, step, 1});
    ASSERT_TRUE(world.run()) << seed;
    world.expect_all_ended();
    if (HasFailure()) return;
  }
}

class DirectChunkTest : public ::testing::Test {
 protected:
  DirectChunkTest() : world_(direct_options({1, 1, 1}, 2), 7) {
    world_.add({Collective::AllReduce, DataType::Float32, Reduction::Sum, 4, 0, 1, 0, 1});
    world_.engine(0, 0).start(world_.operation_of(0, 0));
  }
  proto::ChunkHeader header(uint32_t segment) const {
    const OperationKey key = world_.operation_of(0, 0).key;
    proto::ChunkHeader header = chunk_of(key, proto::Phase::Direct, segment, sizeof(payload_));
    header.signature = EngineWorld::kSignature;
    return header;
  }
  EngineCounters after(NodeId from, const proto::ChunkHeader& header, size_t bytes = 16) {
    world_.engine(0, 0).on_chunk(from, header, std::span(payload_).first(bytes));
    return world_.engine(0, 0).counters();
  }

  EngineWorld world_;
  const uint8_t payload_[16] = {};
};

TEST_F(DirectChunkTest, WhatNoNodeSendsIsMalformed) {
  const NodeId one = EngineWorld::id_of(1);
  EXPECT_EQ(after(one, header(2)).chunks_malformed, 1u) << "the part of another node";
  EXPECT_EQ(after(EngineWorld::id_of(0), header(0)).chunks_malformed, 2u) << "from itself";
  EXPECT_EQ(after(one, header(3)).chunks_malformed, 3u) << "no such place";
  EXPECT_EQ(after(one, header(1), 12).chunks_malformed, 4u) << "not whole";
  proto::ChunkHeader other = header(1);
  other.signature = 77;
  EXPECT_EQ(after(one, other).chunks_malformed, 5u) << "of another signature";
}

TEST_F(DirectChunkTest, APartComesOnce) {
  after(EngineWorld::id_of(1), header(1));
  world_.engine(0, 0).on_chunk(EngineWorld::id_of(1), header(1), payload_);
  EXPECT_EQ(world_.engine(0, 0).counters().chunks_duplicate, 1u);
}

// On a flow that was silent for seconds, while the part went over another one.
TEST(DirectEngine, APartThatComesVeryLateIsNotTakenForAnEarlyOne) {
  EngineWorld world(direct_options({1, 1}, 2), 7);  // one I/O loop
  world.add({Collective::AllReduce, DataType::Uint8, Reduction::Sum, 1, 0, 1, 0, 1});
  const OperationKey key = world.operation_of(0, 0).key;
  ASSERT_TRUE(world.run());
  for (uint64_t step = 1; step <= EarlyChunks::kEndedKept; ++step)
    world.add({Collective::AllReduce, DataType::Uint8, Reduction::Sum, 1, 0, 1, step, 1});
  ASSERT_TRUE(world.run());
  const uint64_t stale = world.counters().chunks_stale;
  proto::ChunkHeader late = chunk_of(key, proto::Phase::Direct, 1, 1);
  late.signature = EngineWorld::kSignature;
  const uint8_t payload = 0;
  world.engine(0, 0).on_chunk(EngineWorld::id_of(1), late, {&payload, 1});
  EXPECT_EQ(world.counters().chunks_stale, stale + 1);
}

TEST_F(DirectChunkTest, PartsOfUnknownJobsAreDropped) {
  proto::ChunkHeader stranger = header(1);
  stranger.job_key = 99;
  EXPECT_EQ(after(EngineWorld::id_of(1), stranger).chunks_stale, 1u);
}
}  // namespace
}  // namespace braid::test
