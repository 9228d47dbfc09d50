// SPDX-License-Identifier: Apache-2.0
// Whole operations whose chunks are taken in piece by piece, interleaved over several flows.
#include <gtest/gtest.h>

#include "engine_shapes.h"
#include "reference.h"

namespace braid::test {
namespace {

// Everything by intake, or everything whole: the same bits and the same counts.
class EngineIntakeWorld : public testing::TestWithParam<Shape> {};

TEST_P(EngineIntakeWorld, the_same_bits_in_pieces_as_in_one_pass) {
  struct Run {
    std::vector<std::vector<uint8_t>> results;
    EngineCounters counters;
  };
  const auto run = [](double by_intake, IntakeCounts& counts) {
    WorldOptions options = options_of(GetParam(), 5);
    options.chunk_bytes = 1024;
    options.hostility.keep_ghost = 0.2;
    options.hostility.by_intake = by_intake;
    EngineWorld world(options, 7);
    size_t operations = 0;
    for (const DataType dtype : kAllDataTypes) {
      for (const auto collective :
           {Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather}) {
        world.add({collective, dtype, Reduction::Average, 2003, 0, 1, operations++});
      }
      world.add({Collective::AllReduce, dtype, Reduction::Max, 1201, 0, 1, operations++, 3});
    }
    EXPECT_TRUE(world.run());
    world.expect_all_ended();
    Run ended;
    for (size_t i = 0; i < operations; ++i) {
      for (uint32_t node = 0; node < GetParam().ranks_of_node.size(); ++node)
        ended.results.push_back(world.result(i, node));
    }
    ended.counters = world.counters();
    counts = world.intake_counts();
    return ended;
  };
  IntakeCounts none;
  IntakeCounts counts;
  const Run whole = run(0, none);
  const Run pieces = run(1, counts);
  EXPECT_EQ(whole.results, pieces.results);
  EXPECT_EQ(whole.counters.bytes_reduced, pieces.counters.bytes_reduced);
  EXPECT_EQ(whole.counters.bytes_carried, pieces.counters.bytes_carried);
  EXPECT_EQ(pieces.counters.chunks_malformed, 0U);
  EXPECT_EQ(none.stored + none.folded + none.dropped, 0U);
  EXPECT_GT(counts.stored, 0U);
  EXPECT_GT(counts.folded, 0U);
  EXPECT_GT(counts.dropped, 0U) << "copies that came over two flows at a time";
}

INSTANTIATE_TEST_SUITE_P(Shapes, EngineIntakeWorld,
                         testing::Values(Shape{"Ring", {2, 1, 3}, nullptr},
                                         Shape{"TwoHops", {1, 2, 1}, two_hops_route},
                                         Shape{"Halving", {1, 3, 1, 1}, halving_route},
                                         Shape{"Racks", {1, 2, 2, 1}, by_racks_of(2)}),
                         [](const auto& one) { return one.param.name; });

// A node's ranks have their results each in its own memory; a chunk for one of them is stored.
TEST(EngineIntakeExchange, stores_what_goes_to_one_place) {
  for (uint64_t seed = 1; seed <= worlds(6); ++seed) {
    WorldOptions options;
    options.ranks_of_node = {1, 2, 1};
    options.is_meshed = true;
    options.hostility.by_intake = 1;
    EngineWorld world(options, seed);
    OperationSpec uneven{Collective::AllToAll, DataType::Uint8, Reduction::Sum, 999};
    uneven.is_uneven = true;
    world.add(uneven);
    world.add({Collective::Gather, DataType::Float32, Reduction::Sum, 1001});
    world.add({Collective::Scatter, DataType::Float64, Reduction::Sum, 777});
    ASSERT_TRUE(world.run()) << seed;
    world.expect_all_ended();
    EXPECT_GT(world.intake_counts().stored, 0U);
    EXPECT_EQ(world.intake_counts().folded, 0U);
    EXPECT_EQ(world.counters().chunks_malformed, 0U);
  }
}

}  // namespace
}  // namespace braid::test
