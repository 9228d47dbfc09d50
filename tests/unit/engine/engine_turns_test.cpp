// SPDX-License-Identifier: Apache-2.0
// What stays on one node: jobs take turns, whatever one of them has queued.
#include <gtest/gtest.h>

#include "engine_world.h"

namespace braid::test {
namespace {

// Starts `count` operations of the job, the first of which is number `first` of the world.
void start(EngineWorld& world, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) world.engine(0, 0).start(world.operation_of(i, 0));
}

OperationSpec sum_of(uint64_t job_key, uint64_t count, uint64_t step = 0) {
  OperationSpec spec;
  spec.job_key = job_key;
  spec.count = count;
  spec.step = step;
  return spec;
}

class EngineTurns : public ::testing::Test {
 protected:
  static constexpr uint64_t kBusy = 1;
  static constexpr uint64_t kOther = 2;

  EngineTurns() : world_(one_node(), 1) {}
  static WorldOptions one_node() {
    WorldOptions options;
    options.ranks_of_node = {2};
    options.unit_bytes = 1 << 20;
    options.chunk_bytes = 64 << 10;
    return options;
  }
  void add(uint64_t job_key, size_t operations, uint64_t count) {
    for (size_t i = 0; i < operations; ++i) world_.add(sum_of(job_key, count, i));
  }
  void run_rounds(int rounds) {
    for (int i = 0; i < rounds; ++i) uv_run(world_.loop().uv(), UV_RUN_NOWAIT);
  }
  // The busy job's operations that end before the other's first one does.
  size_t overtaking() {
    const size_t before = world_.retired_operations(kBusy);
    while (!world_.any_done(kOther)) run_rounds(1);
    return world_.retired_operations(kBusy) - before;
  }

  EngineWorld world_;
};

TEST_F(EngineTurns, SmallOperationsOfAnotherJobDoNotWaitBehindThousands) {
  constexpr size_t kQueued = 10'000;
  add(kBusy, kQueued, 1);
  add(kOther, 1, 1000);
  start(world_, 0, kQueued);
  run_rounds(3);
  ASSERT_FALSE(world_.any_done(kOther));
  start(world_, kQueued, 1);
  EXPECT_LE(overtaking(), 64u) << "what a round does of them";
  EXPECT_LT(world_.retired_operations(kBusy), kQueued / 2);
}

TEST_F(EngineTurns, NorBehindLargeOnes) {
  constexpr size_t kQueued = 6;
  add(kBusy, kQueued, 1 << 20);  // 4 MiB
  add(kOther, 1, 1000);
  start(world_, 0, kQueued);
  run_rounds(3);
  start(world_, kQueued, 1);
  EXPECT_LE(overtaking(), 1u);
}

TEST_F(EngineTurns, AJobsWeightIsItsShare) {
  constexpr size_t kQueued = 3'000;
  add(kBusy, kQueued, 1);
  add(kOther, kQueued, 1);
  JobShare heavy;
  heavy.link.weight = 3;
  world_.engine(0, 0).limit_job(kOther, heavy);
  start(world_, 0, 2 * kQueued);
  while (world_.retired_operations(kBusy) < 500) run_rounds(1);
  EXPECT_NEAR(static_cast<double>(world_.retired_operations(kOther)),
              3.0 * static_cast<double>(world_.retired_operations(kBusy)), 70);
}

}  // namespace
}  // namespace braid::test
