// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "coordinator/plan_director.h"
#include "coordinator/plan_director_testing.h"

namespace braid {
namespace {

using testing::PlanDirectorTest;

// Three plans, of which the last holds for eight rounds.
class PlanDirectorChangeTest : public PlanDirectorTest {
 protected:
  void run_to_third_plan() {
    make();
    run_first();
    for (const auto& [plan, early] : {std::pair{1u, Early::EvenOnes}, {2u, Early::FirstTwo}}) {
      rounds_until_proposal(plan, early);
      accept();
    }
  }
  // The third one's first round has all-reduces that are so much slower.
  void run_first_round_of_third_plan(uint64_t slower) {
    run_to_third_plan();
    PlanReport first = measured(3, Early::EvenOnes);
    for (PlanReport::MeasuredOperation& one : first.operations)
      one.nanoseconds = one.nanoseconds * slower / 10;
    tell_all(first);
  }
};

TEST_F(PlanDirectorChangeTest, IterationsThatHaveBecomeLongerEndTheHold) {
  run_to_third_plan();
  tell_all(report(3, Early::FirstTwo));  // of eight rounds to hold
  EXPECT_TRUE(sent_.empty());
  // The network is another one.
  PlanReport slow = report(3, Early::FirstTwo);
  slow.iteration_ns = kIterationNs * 13 / 10;
  slow.operations.push_back({1, 1'000'000, 3'000'000});
  slow.operations.push_back({2, 2'000'000, 6'000'000});
  slow.operations.push_back({3, 4'000'000, 12'000'000});
  slow.ready_ns = {0, 5'000'000, 10'000'000, 15'000'000};
  tell_all(slow);
  EXPECT_EQ(proposed().number, 4u);
  accept();
  // And then it holds for as long as a first one.
  for (uint32_t round = 1; round <= 2; ++round) {
    EXPECT_TRUE(sent_.empty());
    PlanReport another = slow;
    another.plan = 4;
    another.ready_ns = {0, 20'000'000, 0, 20'000'000};
    tell_all(another);
  }
  proposed();
}

TEST_F(PlanDirectorChangeTest, ALittleLongerIsNoChange) {
  make();
  run_first();
  rounds_until_proposal(1, Early::EvenOnes);
  accept();
  tell_all(report(2, Early::FirstTwo));
  PlanReport slower = report(2, Early::FirstTwo);
  slower.iteration_ns = kIterationNs * 6 / 5;
  add_units(slower);
  tell_all(slower);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(PlanDirectorChangeTest, AnotherNetworkIsNoticedInAPlansFirstRound) {
  run_first_round_of_third_plan(20);
  EXPECT_EQ(proposed().number, 4u);
  accept();
  // Once: this is how the network is now.
  PlanReport same = measured(4, Early::EvenOnes);
  for (PlanReport::MeasuredOperation& one : same.operations) one.nanoseconds *= 2;
  for (int round = 0; round < 20; ++round) tell_all(same);
  EXPECT_TRUE(sent_.empty());
  // And restored.
  tell_all(measured(4, Early::EvenOnes));
  EXPECT_EQ(proposed().number, 5u);
}

TEST_F(PlanDirectorChangeTest, ASomewhatSlowerOneIsTheSame) {
  run_first_round_of_third_plan(14);
  EXPECT_TRUE(sent_.empty());
}

}  // namespace
}  // namespace braid
