// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "engine_world.h"
#include "reference.h"

namespace braid::test {
namespace {

const std::vector<std::vector<uint32_t>> kRings = {
    {1}, {3}, {1, 1}, {2, 1}, {1, 1, 1}, {3, 1, 2}, {1, 1, 1, 1}, {2, 2, 2, 2}, {1, 3, 1, 2, 1}};
constexpr uint64_t kCounts[] = {0, 1, 2, 3, 5, 63, 64, 65, 1000};
constexpr Collective kCollectives[] = {Collective::AllReduce, Collective::Broadcast,
                                       Collective::AllGather, Collective::ReduceScatter};

std::string ring_name(const std::vector<uint32_t>& ranks) {
  std::string name = "nodes";
  for (const uint32_t r : ranks) name += "_" + std::to_string(r);
  return name;
}

uint32_t ranks_in(const std::vector<uint32_t>& ring) {
  uint32_t sum = 0;
  for (const uint32_t r : ring) sum += r;
  return sum;
}

class EngineOnRing : public testing::TestWithParam<std::vector<uint32_t>> {};

TEST_P(EngineOnRing, runs_every_collective_of_every_size) {
  for (uint64_t seed = 1; seed <= 28; ++seed) {
    const auto collective = kCollectives[seed % 4];
    WorldOptions options;
    options.ranks_of_node = GetParam();
    options.io_loops = 1 + static_cast<uint32_t>(seed / 4 % 2);
    options.hostility.submit_pulls = seed % 3 == 0;
    EngineWorld world(options, seed);
    uint64_t step = 0;
    for (const uint64_t count : kCounts) {
      const DataType dtype = kAllDataTypes[(step + seed / 4) % 7];
      world.add({collective, dtype, Reduction::Sum, count,
                 static_cast<uint32_t>(step) % ranks_in(GetParam()), 1, step});
      ++step;
    }
    ASSERT_TRUE(world.run()) << to_string(collective);
    world.expect_all_ended();
    EXPECT_EQ(world.counters().chunks_malformed, 0U);
    if (HasFailure()) return;
  }
}

TEST_P(EngineOnRing, reduces_inputs_that_lie_in_pieces) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    WorldOptions options;
    options.ranks_of_node = GetParam();
    options.io_loops = 1 + static_cast<uint32_t>(seed % 2);
    options.hostility.submit_pulls = seed % 3 == 0;
    EngineWorld world(options, seed);
    uint64_t step = 0;
    for (const uint64_t count : {1, 7, 64, 1000, 3001}) {
      const DataType dtype = kAllDataTypes[(step + seed) % 7];
      const uint32_t pieces = 2 + static_cast<uint32_t>((seed * 5 + step) % 9);
      world.add({Collective::AllReduce, dtype, Reduction::Sum, count, 0, 1, step, pieces});
      ++step;
    }
    ASSERT_TRUE(world.run());
    world.expect_all_ended();
    if (HasFailure()) return;
  }
}

TEST_P(EngineOnRing, reduces_every_dtype_by_every_reduction) {
  for (const auto collective : {Collective::AllReduce, Collective::ReduceScatter}) {
    WorldOptions options;
    options.ranks_of_node = GetParam();
    options.io_loops = 2;
    options.unit_bytes = 640;
    options.chunk_bytes = 128;
    EngineWorld world(options, 11);
    for (const DataType dtype : kAllDataTypes) {
      for (const Reduction reduction : kAllReductions) {
        world.add({collective, dtype, reduction, 301, 0, 1 + static_cast<uint64_t>(reduction), 3});
      }
    }
    ASSERT_TRUE(world.run());
    world.expect_all_ended();
  }
}

TEST_P(EngineOnRing, gives_the_same_bits_whatever_the_order_of_arrival) {
  std::vector<std::vector<uint8_t>> first;
  for (uint64_t seed = 21; seed < 25; ++seed) {
    WorldOptions options;
    options.ranks_of_node = GetParam();
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

INSTANTIATE_TEST_SUITE_P(Rings, EngineOnRing, testing::ValuesIn(kRings),
                         [](const auto& param) { return ring_name(param.param); });

TEST(Engine, cuts_a_large_tensor_into_many_units_and_chunks) {
  for (const auto& ring : {std::vector<uint32_t>{1, 1, 1, 1}, std::vector<uint32_t>{2, 1, 1}}) {
    WorldOptions options;
    options.ranks_of_node = ring;
    options.io_loops = 2;
    options.unit_bytes = 40'000;
    options.chunk_bytes = 4096;
    EngineWorld world(options, 5);
    world.add({Collective::AllReduce, DataType::Float32, Reduction::Sum, 100'003});
    world.add({Collective::AllGather, DataType::BFloat16, Reduction::Sum, 100'003});
    world.add({Collective::ReduceScatter, DataType::Int32, Reduction::Average, 100'003});
    world.add({Collective::Broadcast, DataType::Uint8, Reduction::Sum, 100'003, 2});
    ASSERT_TRUE(world.run());
    world.expect_all_ended();
    EXPECT_GE(world.counters().units_done, ring.size() * 10);
    EXPECT_GT(world.counters().bytes_reduced, 0U);
  }
}

// Nodes that meet jobs and operations in different orders, with one stream each: a node that waits
// for a unit that the other one holds back must not wait for ever.
TEST(Engine, does_not_lock_up_when_nodes_begin_in_different_orders) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    WorldOptions options;
    options.ranks_of_node = {1, 2, 1, 1};
    options.streams = 1;
    options.unit_bytes = 512;
    options.chunk_bytes = 128;
    EngineWorld world(options, seed);
    for (uint64_t k = 0; k < 12; ++k) {
      const auto collective = kCollectives[(k + seed) % 4];
      const uint64_t count = k % 5 == 0 ? 3 : 400;
      world.add({collective, DataType::Int32, Reduction::Sum, count, static_cast<uint32_t>(k % 5),
                 1 + k % 2, k});
    }
    ASSERT_TRUE(world.run()) << "seed " << seed;
    world.expect_all_ended();
    if (HasFailure()) return;
  }
}

TEST(Engine, drops_what_comes_twice) {
  WorldOptions options;
  options.ranks_of_node = {1, 1, 2};
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

TEST(Engine, tells_nothing_from_within_start) {
  WorldOptions options;
  options.ranks_of_node = {2};
  EngineWorld world(options, 3);
  world.add({Collective::AllReduce, DataType::Float32, Reduction::Sum, 0});
  world.engine(0, 0).start(world.operation_of(0, 0));
  EXPECT_FALSE(world.any_done(1));
  for (int round = 0; round < 3; ++round) uv_run(world.loop().uv(), UV_RUN_NOWAIT);
  EXPECT_TRUE(world.any_done(1));
}

TEST(Engine, lets_the_loop_run_between_slices_of_a_local_reduction) {
  WorldOptions options;
  options.ranks_of_node = {2};
  EngineWorld world(options, 3);
  world.add({Collective::AllReduce, DataType::Float32, Reduction::Sum, 1'000'000});
  world.engine(0, 0).start(world.operation_of(0, 0));
  uv_run(world.loop().uv(), UV_RUN_NOWAIT);
  EXPECT_FALSE(world.any_done(1)) << "4 MB at a stroke";
  int rounds = 1;
  while (!world.any_done(1) && rounds < 10'000) {
    uv_run(world.loop().uv(), UV_RUN_NOWAIT);
    ++rounds;
  }
  EXPECT_TRUE(world.any_done(1));
  EXPECT_EQ(uv_run(world.loop().uv(), UV_RUN_NOWAIT),
            1);  // the loop's own wake-up only: nothing spins
}

}  // namespace
}  // namespace braid::test
