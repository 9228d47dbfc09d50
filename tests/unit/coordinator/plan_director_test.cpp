// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan_director.h"

#include <algorithm>
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

}  // namespace
}  // namespace braid
