// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan_director.h"

#include <utility>

#include "coordinator/plan_director_testing.h"

namespace braid {
namespace {

using testing::PlanDirectorTest;

using Groups = std::vector<std::vector<uint64_t>>;

TEST_F(PlanDirectorTest, TheFirstPlanNeedsTheReportsOfAllNodes) {
  make();
  PlanReport first = measured(0);
  tell(10, first);
  tell(10, first);
  EXPECT_TRUE(sent_.empty());
  step_ = 9;
  PlanReport second = measured(0);
  tell(20, second);
  const PlanProposal proposal = proposed();
  EXPECT_EQ(proposal.job_key, 9u);
  EXPECT_EQ(proposal.set, kSet);
  EXPECT_EQ(proposal.number, 1u);
  EXPECT_EQ(proposal.from_step, 9 + kNotice);  // after the node that is ahead
  EXPECT_EQ(proposal.groups, (Groups{{100, 101}, {102, 103}}));
  EXPECT_EQ(proposal.planner, "exact");
  EXPECT_GT(proposal.predicted_ns, 0u);
  EXPECT_FALSE(proposal.cost.empty());
  EXPECT_TRUE(verdicts().empty());
}

TEST_F(PlanDirectorTest, APlanHoldsWhenAllNodesHaveAccepted) {
  make();
  tell_all(measured(0));
  answer(10, 1, true);
  answer(10, 1, true);
  EXPECT_TRUE(verdicts().empty());
  answer(20, 1, true);
  EXPECT_EQ(verdicts(), (std::vector<bool>{true, true}));
  answer(20, 1, true);
  EXPECT_EQ(verdicts().size(), 2u);
}

TEST_F(PlanDirectorTest, WithoutAPlannerNothingIsPlanned) {
  start({});
  tell_all(measured(0));
  EXPECT_TRUE(sent_.empty());
}

TEST_F(PlanDirectorTest, WithoutMeasurementsThereIsNoPlanYet) {
  make();
  for (int i = 0; i < 5; ++i) tell_all(report(0));
  EXPECT_TRUE(sent_.empty());
  tell_all(measured(0));
  proposed();
}

TEST_F(PlanDirectorTest, ReportsThatMakeNoSenseAreIgnored) {
  make();
  PlanReport good = measured(0), longer = report(0), other = report(0);
  add_units(other);
  longer.counts.push_back(1);
  other.tensors[0] = 9;
  tell(10, good);
  tell(20, longer);
  EXPECT_TRUE(sent_.empty());
  tell(20, other);  // contradicts the other node's
  EXPECT_TRUE(sent_.empty());
  tell_all(good);
  proposed();
}

TEST_F(PlanDirectorTest, ASmallGainIsNoReasonToChange) {
  make();
  run_first();
  EXPECT_EQ(rounds_until_proposal(1, Early::FirstTwo), 0u);
}

TEST_F(PlanDirectorTest, TheLeastGainIsAnOption) {
  PlanningOptions options;
  options.min_gain = 0.9;
  make(options);
  run_first();
  EXPECT_EQ(rounds_until_proposal(1, Early::EvenOnes), 0u);
  options.min_gain = 0;
  make(options);
  run_first();
  EXPECT_EQ(rounds_until_proposal(1, Early::FirstTwo), 0u);  // the same plan again
  EXPECT_NE(rounds_until_proposal(1, Early::EvenOnes), 0u);
}

TEST_F(PlanDirectorTest, APlanThatIsNotFasterThanWhatWasMeasuredIsNone) {
  make();
  run_first();
  for (int i = 0; i < 20; ++i) {
    PlanReport fast = report(1, Early::EvenOnes);
    fast.iteration_ns = 1'000'000;  // faster than any prediction
    tell_all(fast);
  }
  EXPECT_TRUE(sent_.empty());
}

// Steps that do not follow each other by one have no iterations.
TEST_F(PlanDirectorTest, WhereIterationsAreNotMeasuredPredictionsDecide) {
  make();
  run_first();
  for (int i = 0; i < 3; ++i) {
    PlanReport unknown = report(1, Early::EvenOnes);
    unknown.iteration_ns = 0;
    tell_all(unknown);
  }
  EXPECT_EQ(proposed().from_step, step_ + kNoticeStepsMin);
}

TEST_F(PlanDirectorTest, EachPlanHoldsForTwiceAsManyRounds) {
  make();
  run_first();
  Early early = Early::EvenOnes;
  uint32_t plan = 1;
  for (const uint32_t rounds : {2, 4, 8, 16, 32, 64, 64}) {
    EXPECT_EQ(rounds_until_proposal(plan, early), rounds);
    EXPECT_EQ(proposed().number, plan + 1);
    EXPECT_EQ(proposed().groups, early == Early::EvenOnes ? (Groups{{100, 102}, {101, 103}})
                                                          : (Groups{{100, 101}, {102, 103}}));
    accept();
    ++plan;
    early = early == Early::EvenOnes ? Early::FirstTwo : Early::EvenOnes;
  }
}

TEST_F(PlanDirectorTest, ARefusalEndsTheProposalOnAllNodes) {
  make();
  tell_all(measured(0));
  answer(10, 1, true);
  answer(20, 1, false);
  EXPECT_EQ(verdicts(), (std::vector<bool>{false, false}));
  answer(10, 1, false);  // the other one's, late
  EXPECT_EQ(verdicts().size(), 2u);
}

TEST_F(PlanDirectorTest, AnswersToTheProposalBeforeDoNotCount) {
  make();
  tell_all(measured(0));
  answer(10, 1, true);
  answer(20, 1, false);
  tell_all(measured(0));
  sent_.clear();
  answer(20, 2, true);
  answer(10, 1, true);  // late
  EXPECT_TRUE(verdicts().empty());
  answer(10, 2, true);
  EXPECT_EQ(verdicts(), (std::vector<bool>{true, true}));
}

TEST_F(PlanDirectorTest, AfterARefusalThereIsMoreNotice) {
  make();
  std::vector<uint64_t> notices;
  for (uint32_t number = 1; number <= 14; ++number) {
    sent_.clear();
    tell_all(measured(0));
    const PlanProposal proposal = proposed();
    EXPECT_EQ(proposal.number, number);  // never the same one twice
    notices.push_back(proposal.from_step - step_);
    answer(20, number, false);
  }
  EXPECT_EQ(notices, (std::vector<uint64_t>{3, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096,
                                            4096, 4096}));
}

TEST_F(PlanDirectorTest, ShortStepsGetMoreNoticeAndNotTooMuch) {
  const auto notice = [&](uint64_t iteration_ns) {
    make();
    sent_.clear();
    PlanReport first = measured(0);
    first.iteration_ns = iteration_ns;
    tell_all(first);
    return proposed().from_step - step_;
  };
  EXPECT_EQ(notice(10'000'000'000), kNoticeStepsMin);
  EXPECT_EQ(notice(3'000'000), 100u);
  EXPECT_EQ(notice(1), kNoticeStepsMax);
}

TEST_F(PlanDirectorTest, ANodeThatDoesNotAnswerInTimeEndsTheProposal) {
  PlanningOptions options;
  options.answer_timeout_ms = 1;
  make(options);
  PlanReport first = measured(0);
  tell_all(first);
  answer(10, 1, true);
  EXPECT_TRUE(verdicts().empty());
  run_until([&] { return !verdicts().empty(); });
  EXPECT_EQ(verdicts(), (std::vector<bool>{false, false}));
  answer(20, 1, true);  // too late
  EXPECT_EQ(verdicts().size(), 2u);
  sent_.clear();
  tell_all(first);
  EXPECT_EQ(proposed().number, 2u);
}

TEST_F(PlanDirectorTest, AnAnswerInTimeStopsTheTimer) {
  PlanningOptions options;
  options.answer_timeout_ms = 1;
  make(options);
  run_first();
  Timer later(*loop_);
  bool is_later = false;
  later.start_once(20, [&] { is_later = true; });
  run_until([&] { return is_later; });
  EXPECT_TRUE(sent_.empty());
}

TEST_F(PlanDirectorTest, ReportsOfAnOlderPlanAreIgnored) {
  make();
  run_first();
  for (int i = 0; i < 20; ++i) tell_all(report(0, Early::EvenOnes));
  EXPECT_TRUE(sent_.empty());
  tell_all(report(1, Early::EvenOnes));
  EXPECT_TRUE(sent_.empty());  // the first round, whatever came before
  tell_all(report(1, Early::EvenOnes));
  proposed();
}

TEST_F(PlanDirectorTest, ReportsWhileAProposalIsPendingProposeNothingElse) {
  make();
  PlanReport first = measured(0);
  tell_all(first);
  for (int i = 0; i < 5; ++i) tell_all(first);
  proposed();
}

TEST_F(PlanDirectorTest, SetsArePlannedApart) {
  make();
  run_first();
  PlanReport other = report(0);
  other.set = kSet + 1;
  add_units(other);
  tell_all(other);
  EXPECT_EQ(proposed().set, kSet + 1);
  EXPECT_EQ(proposed().number, 1u);
}

TEST_F(PlanDirectorTest, SetsAreLimited) {
  make();
  PlanReport one = report(0);
  for (uint64_t i = 0; i < PlanDirector::kSetsMax; ++i) {
    one.set = i + 1;
    tell(10, one);
  }
  add_units(one);
  one.set = 1'000'000;
  tell_all(one);
  EXPECT_TRUE(sent_.empty());
  one.set = 77;  // known
  tell_all(one);
  proposed();
}

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
  // The third one's first round has all-reduces that are so much slower, in tenths.
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
  // And restored: the second change within a short time must last longer.
  tell_all(measured(4, Early::EvenOnes));
  EXPECT_TRUE(sent_.empty());
  tell_all(measured(4, Early::EvenOnes));
  EXPECT_EQ(proposed().number, 5u);
}

TEST_F(PlanDirectorChangeTest, ASomewhatSlowerOneIsTheSame) {
  run_first_round_of_third_plan(14);
  EXPECT_TRUE(sent_.empty());
}

}  // namespace
}  // namespace braid
