// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "engine_world.h"

namespace braid::test {
namespace {

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
