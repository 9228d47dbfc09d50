// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan_simulation.h"

#include "base/log.h"
#include "loop/loop_testing.h"

namespace braid {
namespace {

// Sanitizers look for other things, and are slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint32_t kSeeds = 50;
#else
constexpr uint32_t kSeeds = 300;
#endif

class PlanSimulationTest : public testing::LoopTest {
 protected:
  PlanSimulationTest() { EXPECT_TRUE(set_log_level("warn").is_ok()); }
  ~PlanSimulationTest() override { (void)set_log_level("info"); }
};

// For every step all nodes use the same groups and settings, also while these are tuned; every
// submission is passed on once and in the order of its tensor's steps; nothing is held for ever.
TEST_F(PlanSimulationTest, PlansChangeOnAllNodesAtOneStep) {
  uint32_t changes = 0, refusals = 0, kept_back = 0, tuned = 0, tuning_refusals = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    testing::PlanSimulation simulation(*loop_, seed);
    ASSERT_EQ(simulation.run(), "") << "seed " << seed;
    changes += simulation.changes();
    refusals += simulation.refusals();
    kept_back += simulation.kept_back();
    tuned += simulation.is_tuned() ? 1 : 0;
    tuning_refusals += simulation.tuning_refusals();
  }
  // That what is interesting has happened.
  RecordProperty("changes", static_cast<int>(changes));
  RecordProperty("refusals", static_cast<int>(refusals));
  RecordProperty("kept_back", static_cast<int>(kept_back));
  RecordProperty("tuned", static_cast<int>(tuned));
  EXPECT_GT(tuned, kSeeds / 10);
  EXPECT_GT(tuning_refusals, kSeeds / 10);
  EXPECT_GT(changes, kSeeds);
  EXPECT_GT(refusals, kSeeds / 10);
  EXPECT_GT(kept_back, kSeeds);
}

}  // namespace
}  // namespace braid
