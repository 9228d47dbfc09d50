// SPDX-License-Identifier: Apache-2.0
// All-reduces by every route, with the same seeds.
#include <cstring>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "engine/fixed_owners.h"
#include "engine_shapes.h"
#include "reference.h"

namespace braid::test {
namespace {

const std::vector<Shape> kShapes = {
    {"ring_2", {1, 2}, nullptr},
    {"ring_4", {2, 1, 1, 3}, nullptr},
    {"ring_7", {1, 2, 1, 1, 1, 1, 1}, nullptr},
    {"direct_2", {1, 2}, nullptr, true},
    {"direct_5", {1, 2, 1, 1, 1}, nullptr, true},
    {"halving_2", {1, 2}, halving_route},
    {"halving_3", {1, 1, 2}, halving_route},
    {"halving_4", {2, 1, 1, 3}, halving_route},
    {"halving_5", {1, 1, 1, 1, 1}, halving_route},
    {"halving_7", {1, 2, 1, 1, 1, 1, 1}, halving_route},
    {"halving_8", {1, 1, 1, 1, 1, 1, 1, 1}, halving_route},
    {"two_hops_2", {1, 2}, two_hops_route},
    {"two_hops_3", {1, 1, 2}, two_hops_route},
    {"two_hops_4", {2, 1, 1, 3}, two_hops_route},
    {"two_hops_7", {1, 2, 1, 1, 1, 1, 1}, two_hops_route},
    {"two_hops_2_early", {1, 2}, two_hops_route, false, true},
    {"two_hops_4_early", {2, 1, 1, 3}, two_hops_route, false, true},
    {"two_hops_7_early", {1, 2, 1, 1, 1, 1, 1}, two_hops_route, false, true},
    {"racks_2x2", {1, 2, 1, 1}, by_racks_of(2)},
    {"racks_2x3", {1, 1, 1, 2, 1, 1}, by_racks_of(3)},
    {"racks_3x2", {1, 1, 2, 1, 1, 1}, by_racks_of(2)}};

class EngineOnRoute : public testing::TestWithParam<Shape> {};

TEST_P(EngineOnRoute, SumsAreExactWhateverHappensOnTheWay) {
  for (uint64_t seed = 1; seed <= worlds(14); ++seed) {
    EngineWorld world(options_of(GetParam(), seed), seed);
    uint64_t step = 0;
    for (const uint64_t count : {0, 1, 2, 17, 63, 64, 65, 200, 1000, 6001}) {
      const DataType dtype = kAllDataTypes[(step + seed) % 7];
      const uint32_t pieces = seed % 2 == 0 ? 1 : 1 + static_cast<uint32_t>(step % 4);
      world.add({Collective::AllReduce, dtype, Reduction::Sum, count, 0, 1, step++, pieces});
    }
    ASSERT_TRUE(world.run()) << seed;
    world.expect_all_ended();
    EXPECT_EQ(world.counters().chunks_malformed, 0U);
    if (HasFailure()) return;
  }
}

TEST_P(EngineOnRoute, EveryDtypeAndReduction) {
  WorldOptions options = options_of(GetParam(), 3);
  options.unit_bytes = 640;
  options.chunk_bytes = 128;
  EngineWorld world(options, 11);
  for (const auto collective : {Collective::AllReduce, Collective::ReduceScatter}) {
    for (const DataType dtype : kAllDataTypes) {
      for (const Reduction reduction : kAllReductions)
        world.add({collective, dtype, reduction, 301, 0, 1 + static_cast<uint64_t>(reduction), 3});
    }
  }
  ASSERT_TRUE(world.run());
  world.expect_all_ended();
}

TEST_P(EngineOnRoute, TheSameBitsWhateverTheOrderOfArrival) {
  std::vector<std::vector<uint8_t>> first;
  for (uint64_t seed = 21; seed < 26; ++seed) {
    WorldOptions options = options_of(GetParam(), seed);
    options.streams = 1 + static_cast<uint32_t>(seed % 3);
    EngineWorld world(options, seed);
    const DataType floats[] = {DataType::Float32, DataType::Float64, DataType::Float16,
                               DataType::BFloat16};
    for (const DataType dtype : floats)
      world.add({Collective::AllReduce, dtype, Reduction::Average, 2003});
    ASSERT_TRUE(world.run());
    world.expect_all_ended();
    for (size_t i = 0; i < 4; ++i) {
      if (first.size() <= i) first.push_back(world.result(i, 0));
      EXPECT_EQ(world.result(i, 0), first[i]) << "seed " << seed;
    }
  }
}

// Nodes meet jobs and operations in different orders, with one stream each. Some operations leave
// segments empty, and some go around the ring.
TEST_P(EngineOnRoute, ManyAtOnceDoNotBlockEachOther) {
  for (uint64_t seed = 1; seed <= worlds(12); ++seed) {
    WorldOptions options = options_of(GetParam(), seed);
    options.streams = 1;
    options.unit_bytes = 1024;
    EngineWorld world(options, seed);
    for (uint64_t step = 0; step < 16; ++step) {
      const Collective others[] = {Collective::Broadcast, Collective::AllGather,
                                   Collective::ReduceScatter};
      const auto collective = step % 3 == 2 ? others[(step + seed) / 3 % 3] : Collective::AllReduce;
      const uint64_t count = step % 5 == 0 ? 3 : 500;
      world.add({collective, DataType::Int32, Reduction::Sum, count, 1, 1 + step % 2, step});
    }
    ASSERT_TRUE(world.run()) << seed;
    world.expect_all_ended();
    if (HasFailure()) return;
  }
}

// Whatever the route brings to a node, and however often.
TEST_P(EngineOnRoute, CarriesAsManyBytesAsTheOperationsHave) {
  WorldOptions options = options_of(GetParam(), 4);
  options.hostility.keep_ghost = 0.5;
  EngineWorld world(options, 9);
  uint64_t bytes = 0;
  for (const uint64_t count : {1, 63, 200, 6001}) {
    world.add({Collective::AllReduce, DataType::Float64, Reduction::Sum, count, 0, 1, count});
    bytes += count * sizeof(double);
  }
  ASSERT_TRUE(world.run());
  for (uint32_t node = 0; node < GetParam().ranks_of_node.size(); ++node) {
    uint64_t carried = 0;
    for (uint32_t io_loop = 0; io_loop < options.io_loops; ++io_loop)
      carried += world.engine(node, io_loop).counters().bytes_carried;
    EXPECT_NEAR(static_cast<double>(carried), static_cast<double>(bytes), 8) << node;
  }
}

TEST_P(EngineOnRoute, DropsWhatComesTwice) {
  WorldOptions options = options_of(GetParam(), 1);
  options.hostility.keep_ghost = 0.5;
  options.hostility.kill_flow = 0.1;
  EngineWorld world(options, 3);
  world.add({Collective::AllReduce, DataType::Int64, Reduction::Sum, 5000});
  world.add({Collective::AllReduce, DataType::Float32, Reduction::Product, 5000});
  ASSERT_TRUE(world.run());
  world.expect_all_ended();
  EXPECT_GT(world.counters().chunks_duplicate + world.counters().chunks_stale, 0U);
  EXPECT_EQ(world.counters().chunks_malformed, 0U);
}

TEST_P(EngineOnRoute, AnAbortLetsGoOfEverything) {
  for (uint64_t seed = 1; seed <= worlds(12); ++seed) {
    EngineWorld world(options_of(GetParam(), seed), seed);
    for (uint64_t step = 0; step < 6; ++step)
      world.add(
          {Collective::AllReduce, DataType::Float32, Reduction::Sum, 900, 0, 1 + step % 2, step});
    world.run_some(300 * seed);
    world.abort_job(1);
    ASSERT_TRUE(world.run()) << seed;  // the other job goes on
    world.expect_all_ended();
    world.expect_no_memory_held(1);
    if (HasFailure()) return;
  }
}

TEST_P(EngineOnRoute, NothingIsOverWhereLinksWereLost) {
  EngineWorld world(options_of(GetParam(), 2), 5);
  world.add({Collective::AllReduce, DataType::Float32, Reduction::Sum, 900});
  world.run_some(20);
  for (uint32_t node = 0; node < GetParam().ranks_of_node.size(); ++node) world.lose_links_of(node);
  world.run_some(20'000);
  EXPECT_EQ(world.retired_operations(1), 0U);
  world.abort_job(1);
  ASSERT_TRUE(world.run());
  world.expect_no_memory_held(1);
}

INSTANTIATE_TEST_SUITE_P(Shapes, EngineOnRoute, testing::ValuesIn(kShapes),
                         [](const auto& param) { return param.param.name; });

// Node 0 of four, by halving: its parts come from 1, then 2 for segment 0, from 1 for segment 2;
// the sums of 1 and 3 come from 1, that of 2 from 2. Four chunks of 64 bytes, one for each segment.
class RouteChunkTest : public testing::Test {
 protected:
  RouteChunkTest() : world_(options_of({"", {1, 1, 1, 1}, halving_route}, 1), 7) {
    world_.add({Collective::AllReduce, DataType::Float32, Reduction::Sum, 64});
    engine().start(world_.operation_of(0, 0));
  }
  Engine& engine() { return world_.engine(0, 0); }
  void go() { engine().go(world_.operation_of(0, 0).key); }
  proto::ChunkHeader header(proto::Phase phase, uint32_t segment) const {
    return chunk_of(world_.operation_of(0, 0).key, phase, segment, 64);
  }
  void receive(uint32_t node, const proto::ChunkHeader& header) {
    engine().on_chunk(EngineWorld::id_of(node), header, payload_);
  }
  uint64_t malformed() { return engine().counters().chunks_malformed; }
  std::vector<float> result() const {
    std::vector<float> values(64);
    std::memcpy(values.data(), world_.operation_of(0, 0).result, 256);
    return values;
  }

  EngineWorld world_;
  const std::vector<uint8_t> payload_ = std::vector<uint8_t>(64);
};

using proto::Phase;

TEST_F(RouteChunkTest, ComeFromWhereTheRouteSays) {
  go();
  const auto before = result();
  receive(3, header(Phase::ReduceScatter, 0));
  receive(2, header(Phase::ReduceScatter, 2));
  receive(1, header(Phase::ReduceScatter, 1));
  receive(1, header(Phase::AllGather, 0));
  receive(2, header(Phase::AllGather, 1));
  receive(0, header(Phase::ReduceScatter, 0));
  EXPECT_EQ(malformed(), 6U);
  EXPECT_EQ(result(), before);
}

TEST_F(RouteChunkTest, OfASumComeAfterThePart) {
  receive(1, header(Phase::AllGather, 1));
  EXPECT_EQ(malformed(), 1U) << "nothing was sent before go";
  go();
  receive(2, header(Phase::AllGather, 2));
  EXPECT_EQ(malformed(), 2U) << "the part of node 1 is not in what was sent";
  receive(1, header(Phase::AllGather, 1));
  EXPECT_EQ(malformed(), 2U);
}

TEST_F(RouteChunkTest, ThatComeBeforeTheirTurnWaitForIt) {
  go();
  const auto before = result();
  receive(2, header(Phase::ReduceScatter, 0));
  EXPECT_EQ(result(), before);
  receive(2, header(Phase::ReduceScatter, 0));
  EXPECT_EQ(engine().counters().chunks_duplicate, 1U);
  EXPECT_EQ(engine().counters().bytes_copied, 64U) << "put aside, once";
  receive(1, header(Phase::ReduceScatter, 0));
  EXPECT_NE(result(), before);
  EXPECT_EQ(engine().counters().bytes_reduced, 128U);
  EXPECT_EQ(malformed(), 0U);
}

// Node 0 of four, by two hops and early; four chunks of 64 bytes. The parts of segment 0 come from
// all others.
class EarlyChunkTest : public testing::Test {
 protected:
  EarlyChunkTest() : world_(options_of({"", {1, 1, 1, 1}, two_hops_route, false, true}, 1), 7) {
    world_.add({Collective::AllReduce, DataType::Float32, Reduction::Sum, 64});
  }
  Engine& engine() { return world_.engine(0, 0); }
  void start() { engine().start(world_.operation_of(0, 0)); }
  void receive_part(uint32_t node, uint32_t signature = EngineWorld::kSignature) {
    const OperationKey key = world_.operation_of(0, 0).key;
    proto::ChunkHeader header = chunk_of(key, Phase::ReduceScatter, 0, 64);
    header.signature = signature;
    engine().on_chunk(EngineWorld::id_of(node), header, payload_);
  }

  EngineWorld world_;
  const std::vector<uint8_t> payload_ = std::vector<uint8_t>(64);
};

TEST_F(EarlyChunkTest, ThatComeBeforeTheirOperationAreAddedWhenItStarts) {
  receive_part(2);
  receive_part(1);
  receive_part(2);
  EXPECT_EQ(engine().counters().bytes_reduced, 0U);
  EXPECT_EQ(engine().counters().bytes_copied, 128U) << "what is kept of two nodes";
  EXPECT_EQ(engine().counters().chunks_duplicate, 1U);
  start();
  EXPECT_EQ(engine().counters().bytes_reduced, 128U) << "nobody said go";
  receive_part(3);
  EXPECT_EQ(engine().counters().bytes_reduced, 192U);
  EXPECT_EQ(engine().counters().chunks_stale + engine().counters().chunks_malformed, 0U);
}

TEST_F(EarlyChunkTest, OfAnotherSignatureAreNotTaken) {
  receive_part(1, 77);
  start();
  EXPECT_EQ(engine().counters().chunks_malformed, 1U);
  receive_part(1, 77);
  receive_part(1, 0);
  EXPECT_EQ(engine().counters().chunks_malformed, 3U);
  EXPECT_EQ(engine().counters().bytes_reduced, 0U);
}

TEST_F(EarlyChunkTest, WithoutASignatureAreNotKept) {
  receive_part(1, 0);
  EXPECT_EQ(engine().counters().chunks_stale, 1U);
}

// --- what fixed owners do not allow ---

void start_with_fixed_owners(WorldOptions options, Collective collective) {
  options.adjust = [](Operation& one) {
    auto owners = std::make_shared<FixedOwners>();
    owners->append(0, one.count);
    one.fixed_owners = std::move(owners);
  };
  EngineWorld world(std::move(options), 1);
  world.add({collective, DataType::Float32, Reduction::Sum, 100});
  world.engine(0, 0).start(world.operation_of(0, 0));
}

const std::vector<uint32_t> kThreeNodes = {1, 1, 1};

TEST(FixedOwnersDeathTest, AreThoseOfWholeAllReducesWithASegmentForEachNode) {
  for (const auto& [shape, collective] :
       {std::pair{Shape{"direct", kThreeNodes, nullptr, true}, Collective::AllReduce},
        {Shape{"halving", kThreeNodes, halving_route}, Collective::AllReduce},
        {Shape{"early", kThreeNodes, two_hops_route, false, true}, Collective::AllReduce},
        {Shape{"broadcast", kThreeNodes, nullptr}, Collective::Broadcast}}) {
    EXPECT_DEATH(start_with_fixed_owners(options_of(shape, 1), collective), "fixed owners are for")
        << shape.name;
  }
}

TEST(FixedOwners, GoAroundTheRing) {
  start_with_fixed_owners(options_of({"ring", kThreeNodes, nullptr}, 1), Collective::AllReduce);
}

}  // namespace
}  // namespace braid::test
