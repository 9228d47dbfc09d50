// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include <gtest/gtest.h>

#include "engine_shapes.h"
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

class EngineOnRing : public testing::TestWithParam<std::vector<uint32_t>> {};

TEST_P(EngineOnRing, runs_every_collective_of_every_size) {
  for (uint64_t seed = 1; seed <= worlds(28); ++seed) {
    const auto collective = kCollectives[seed % 4];
    const auto& ring = GetParam();
    const uint32_t ranks = std::accumulate(ring.begin(), ring.end(), 0U);
    EngineWorld world(options_of({{}, ring, nullptr}, seed), seed);
    uint64_t step = 0;
    for (const uint64_t count : kCounts) {
      const DataType dtype = kAllDataTypes[(step + seed / 4) % 7];
      world.add(
          {collective, dtype, Reduction::Sum, count, static_cast<uint32_t>(step) % ranks, 1, step});
      ++step;
    }
    ASSERT_TRUE(world.run()) << to_string(collective);
    world.expect_all_ended();
    EXPECT_EQ(world.counters().chunks_malformed, 0U);
    if (HasFailure()) return;
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
  // More than the caches hold, in pieces that begin anywhere.
  world.add({Collective::AllReduce, DataType::Float32, Reduction::Average, 1'000'003, 0, 1, 0, 3});
  world.engine(0, 0).start(world.operation_of(0, 0));
  uv_run(world.loop().uv(), UV_RUN_NOWAIT);
  EXPECT_FALSE(world.any_done(1)) << "4 MB at a stroke";
  int rounds = 1;
  while (!world.any_done(1) && rounds < 10'000) {
    uv_run(world.loop().uv(), UV_RUN_NOWAIT);
    ++rounds;
  }
  EXPECT_TRUE(world.any_done(1));
  world.expect_all_ended();
  EXPECT_EQ(uv_run(world.loop().uv(), UV_RUN_NOWAIT),
            1);  // the loop's own wake-up only: nothing spins
}

// --- jobs that end ---

WorldOptions three_nodes() {
  WorldOptions options;
  options.ranks_of_node = {1, 2, 1};
  options.io_loops = 2;
  options.unit_bytes = 1024;
  return options;
}

void add_to_job(EngineWorld& world, uint64_t job_key) {
  world.add({Collective::AllReduce, DataType::Float32, Reduction::Sum, 3000, 0, job_key, 0});
  world.add({Collective::Broadcast, DataType::Int32, Reduction::Sum, 2000, 1, job_key, 1});
  world.add({Collective::AllGather, DataType::Uint8, Reduction::Sum, 1500, 0, job_key, 2});
  world.add({Collective::ReduceScatter, DataType::Float64, Reduction::Average, 300, 0, job_key, 3});
}

TEST(EngineAbort, ends_a_job_at_any_moment_and_leaves_the_others_alone) {
  for (uint64_t seed = 0; seed < worlds(30); ++seed) {
    EngineWorld world(three_nodes(), seed);
    add_to_job(world, 1);
    add_to_job(world, 2);
    world.run_some(seed * 200);
    world.abort_job(1);
    ASSERT_TRUE(world.run()) << "seed " << seed;
    world.expect_all_ended();
    EXPECT_EQ(world.retired_operations(2), 4U * 3U);
    world.expect_no_memory_held(1);
    if (HasFailure()) return;
  }
}

TEST(EngineAbort, of_an_unknown_job_or_a_go_for_one_does_nothing) {
  EngineWorld world(three_nodes(), 1);
  world.engine(0, 0).abort_job(99);
  world.engine(0, 0).go({99, 1, 2});
  add_to_job(world, 1);
  ASSERT_TRUE(world.run());
  world.expect_all_ended();
}

TEST(EngineAbort, stops_local_work) {
  WorldOptions options;
  options.ranks_of_node = {2};
  EngineWorld world(options, 1);
  world.add({Collective::AllReduce, DataType::Float32, Reduction::Sum, 1'000'000});
  world.engine(0, 0).start(world.operation_of(0, 0));
  uv_run(world.loop().uv(), UV_RUN_NOWAIT);
  world.abort_job(1);
  for (int round = 0; round < 100; ++round) uv_run(world.loop().uv(), UV_RUN_NOWAIT);
  EXPECT_FALSE(world.any_done(1));
  world.expect_no_memory_held(1);
}

}  // namespace
}  // namespace braid::test
