// SPDX-License-Identifier: Apache-2.0
// A set is planned beside what the job's other sets send at the same time.
#include "coordinator/plan_director_testing.h"

namespace braid {
namespace {

using Groups = std::vector<std::vector<uint64_t>>;

// Both sets begin their steps together, on one stream. The first set's two groups take the network
// for 12 ms at once, and for 12 ms from 20 ms on. Beside them the second set's step ends after 48
// ms in two groups, and after 46 ms in one. Alone it ends after 32 ms, or 34 ms.
class PlanDirectorBesideTest : public testing::PlanDirectorTest {
 protected:
  static constexpr uint64_t kOther = 6;
  const Groups apart_ = {{100, 101}, {102, 103}};
  const Groups together_ = {{100, 101, 102, 103}};

  void make_streams() {
    PlanningOptions options;
    options.planner = *find_planner("streams");
    make(options);
  }
  PlanReport beside(uint64_t set, double share, uint32_t plan) {
    PlanReport result = measured(plan);
    result.beside = {{set, 0, share}};
    return result;
  }
  // The other set's first plan, which is made beside this one.
  void plan_other(double share) {
    set_ = kOther;
    tell_all(beside(kSet, share, 0));
  }
  // Rounds of reports until something is proposed.
  bool is_proposed_beside(double share, uint32_t plan) {
    for (int round = 0; round < 10 && sent_.empty(); ++round) tell_all(beside(kSet, share, plan));
    return !sent_.empty();
  }
};

TEST_F(PlanDirectorBesideTest, ASetThatComesLaterIsPlannedBesideTheFirst) {
  make_streams();
  run_first();
  plan_other(1);
  EXPECT_EQ(proposed().set, kOther);
  EXPECT_EQ(proposed().groups, together_);
  // 1 ms of forward pass.
  EXPECT_NEAR(static_cast<double>(proposed().predicted_ns), 47e6, 0.1e6);
}

TEST_F(PlanDirectorBesideTest, AlmostNoStepsBesideTheFirstDoNotCount) {
  make_streams();
  run_first();
  plan_other(0.1);
  EXPECT_EQ(proposed().groups, apart_);
  EXPECT_NEAR(static_cast<double>(proposed().predicted_ns), 1e6 + 0.1 * 48e6 + 0.9 * 32e6, 0.1e6);
}

TEST_F(PlanDirectorBesideTest, AFirstPlanIsNotBesideAnything) {
  make_streams();
  plan_other(1);
  EXPECT_EQ(proposed().groups, apart_);
}

TEST_F(PlanDirectorBesideTest, AnotherRhythmBringsAnotherPlan) {
  make_streams();
  run_first();
  plan_other(1);
  accept();
  EXPECT_FALSE(is_proposed_beside(1, 1));
  ASSERT_TRUE(is_proposed_beside(0.1, 1));
  EXPECT_EQ(proposed().groups, apart_);
}

TEST_F(PlanDirectorBesideTest, ASetThatHasGoneIsBesideNoMore) {
  make_streams();
  run_first();
  plan_other(1);
  accept();
  set_ = kSet;
  unregister(10);
  set_ = kOther;
  // The nodes may still name it: they have seen it a while ago.
  tell_all(beside(kSet, 1, 1));
  ASSERT_FALSE(sent_.empty()) << "at once";
  EXPECT_EQ(proposed().groups, apart_);
}

TEST_F(PlanDirectorBesideTest, WhoseReportComesFirstDoesNotMatter) {
  Groups groups[2];
  for (const bool is_turned : {false, true}) {
    sent_.clear();
    set_ = kSet;
    make_streams();
    run_first();
    set_ = kOther;
    PlanReport one = beside(kSet, 1, 0), other = beside(kSet, 0.9, 0);
    other.ready_ns[1] = 3'000'000;
    if (is_turned) {
      tell(20, other);
      tell(10, one);
    } else {
      tell(10, one);
      tell(20, other);
    }
    groups[is_turned] = proposed().groups;
  }
  EXPECT_FALSE(groups[0].empty());
  EXPECT_EQ(groups[0], groups[1]);
}

}  // namespace
}  // namespace braid
