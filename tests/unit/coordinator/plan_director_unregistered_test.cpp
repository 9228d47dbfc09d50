// SPDX-License-Identifier: Apache-2.0
// Sets that some nodes, then all, have no more.
#include "coordinator/plan_director_testing.h"

namespace braid {
namespace {

using testing::PlanDirectorTuningTest;

class PlanDirectorUnregisteredTest : public PlanDirectorTuningTest {};

TEST_F(PlanDirectorUnregisteredTest, AreForgottenWhenAllNodesSaySo) {
  make();
  run_first();
  unregister_all();
  sent_.clear();
  // It would be plan 2 of a set that is known.
  tell_all(measured(0));
  EXPECT_EQ(proposed().number, 1u);
}

TEST_F(PlanDirectorUnregisteredTest, MakeRoomForOthers) {
  make();
  for (set_ = 1; set_ <= 2 * PlanDirector::kSetsMax; ++set_) {
    tell_all(report(0));
    unregister_all();
  }
  tell_all(measured(0));
  EXPECT_EQ(proposed().set, set_);
}

TEST_F(PlanDirectorUnregisteredTest, GetNoPlanFromTheFirstNodeOn) {
  make();
  unregister(10);  // of a set that was never heard of
  PlanReport first = measured(0);
  tell(10, first);
  unregister(10);
  tell(20, first);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(PlanDirectorUnregisteredTest, EndTheProposalThatIsOnItsWay) {
  make();
  tell_all(measured(0));
  const uint32_t number = proposed().number;
  unregister(10);
  EXPECT_EQ(verdicts(), (std::vector<bool>{false, false}));
  sent_.clear();
  answer(20, number, true);
  unregister(20);
  answer(20, number, true);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(PlanDirectorUnregisteredTest, EndTheirTuningAndOthersFollow) {
  make_tuned();
  begin_tuning();
  EXPECT_TRUE(proposed().settings.has_value());
  unregister(10);
  EXPECT_EQ(verdicts(), (std::vector<bool>{false, false}));
  unregister(20);
  EXPECT_EQ(director_->tuning_json(), "[]");
  sent_.clear();
  set_ = kOtherSet;
  begin_tuning(78);
  EXPECT_TRUE(proposed().settings.has_value());
  EXPECT_EQ(proposed().set, kOtherSet);
}

}  // namespace
}  // namespace braid
