// SPDX-License-Identifier: Apache-2.0
// The coordinator tunes what it plans.
#include "coordinator/plan_director_testing.h"

namespace braid {
namespace {

using testing::PlanDirectorTuningTest;

TEST_F(PlanDirectorTuningTest, BeginsWhenTheFirstPlanHasSettled) {
  make_tuned();
  register_all();
  EXPECT_TRUE(sent_.empty());
  run_first();
  EXPECT_TRUE(sent_.empty());
  step_ = 20;
  tell_all(report(1));
  const PlanProposal proposal = proposed();
  EXPECT_EQ(proposal.settings, defaults());  // how fast is it now?
  EXPECT_EQ(proposal.from_step, 21u);
  EXPECT_EQ(proposal.flows_open, 16u);
  EXPECT_TRUE(proposal.reports_steps);
}

// A hop takes 5 ms, and a byte a nanosecond: what is direct saves a hop, and costs two nanoseconds
// more for each byte.
TEST_F(PlanDirectorTuningTest, TriesTheAlgorithmsFirstThatTheMeasuredCostAsksFor) {
  make_tuned();
  begin_tuning();
  adopt();
  EXPECT_EQ(in_force_->direct_bytes, 32u << 10);
  uint64_t step = step_;
  for (; sent_.empty() && step < step_ + 20; ++step) {
    for (const NodeId node : kNodes) tell_step(node, plan_, step, 100'000'000);
  }
  const PlanProposal proposal = proposed();
  ASSERT_TRUE(proposal.settings.has_value());
  EXPECT_EQ(proposal.settings->direct_bytes, 256u << 10);
}

TEST_F(PlanDirectorTuningTest, FindsWhatIsFasterAndRemembersIt) {
  make_tuned();
  begin_tuning();
  EXPECT_LE(train(), kSteps + JobTuning::kSettleSteps + 5);
  ASSERT_TRUE(in_force_.has_value());
  EXPECT_GE(in_force_->flows, 4u);
  EXPECT_LE(step_ns(*in_force_), step_ns(defaults()) * 0.45);
  EXPECT_FALSE(reports_steps_);
  ASSERT_EQ(knowledge_.knowledge().entries().size(), 1u);
  const KnowledgeEntry& learned = knowledge_.knowledge().entries()[0];
  EXPECT_EQ(learned.key.tensors_hash, 77u);
  EXPECT_EQ(learned.values.at("flows_per_link"), in_force_->flows);
  EXPECT_GT(learned.gain, 2);
  EXPECT_GT(counters_.trials, 10u);
  EXPECT_EQ(counters_.gain, learned.gain);
}

TEST_F(PlanDirectorTuningTest, TheNextJobBeginsWithWhatWasFound) {
  make_tuned();
  begin_tuning();
  train();
  const TransferSettings found = *in_force_;

  in_force_.reset();
  step_ = 0;
  make_tuned();
  register_set(10);
  EXPECT_TRUE(sent_.empty());
  register_set(20);
  const PlanProposal proposal = proposed();
  EXPECT_EQ(proposal.settings, found);
  EXPECT_EQ(proposal.from_step, 1u);
  EXPECT_LE(train(), 10u);
  EXPECT_EQ(*in_force_, found);
}

TEST_F(PlanDirectorTuningTest, NothingIsPlannedMeanwhileAndAnewAfterwards) {
  pinned_ = {"streams"};  // plans are made for as many
  make_tuned();
  begin_tuning();
  adopt();
  for (uint32_t round = 0; round < 100; ++round) tell_all(report(plan_, Early::EvenOnes));
  EXPECT_TRUE(sent_.empty());
  train();
  tell_all(measured(plan_, Early::EvenOnes));
  const PlanProposal proposal = proposed();
  EXPECT_FALSE(proposal.keeps_groups());
  EXPECT_FALSE(proposal.settings.has_value());
}

// The known settings hold as plan 1 and more, before there are groups of which another network
// could change what is to be expected.
TEST_F(PlanDirectorTuningTest, AnotherNetworkBeforeTheFirstGroupsProposesNothing) {
  make_tuned();
  begin_tuning();
  train();
  step_ = 0;
  in_force_.reset();
  make_tuned();
  register_all();
  train();
  ASSERT_TRUE(is_over());
  PlanReport slow = measured(plan_);
  for (const uint64_t iteration_ns : {1, 2, 4}) {  // no plan is faster than that
    slow.iteration_ns = iteration_ns;
    tell_all(slow);
    EXPECT_TRUE(sent_.empty());
  }
}

TEST_F(PlanDirectorTuningTest, AChangeThatComesTooLateIsProposedAgain) {
  make_tuned(/*is_planned=*/false);
  register_all();
  tell_all(report(0));
  const PlanProposal first = proposed();
  sent_.clear();
  step_ = 30;  // of the node that says no
  answer(20, first.number, false);
  EXPECT_EQ(verdicts(), (std::vector<bool>{false, false}));
  const PlanProposal second = proposed();
  EXPECT_EQ(second.settings, first.settings);
  EXPECT_GT(second.from_step, 30u);
}

TEST_F(PlanDirectorTuningTest, NodesThatNeverAgreeEndIt) {
  make_tuned(/*is_planned=*/false);
  register_all();
  tell_all(report(0));
  for (uint32_t i = 0; i < TuningTurns::kRefusalsMax; ++i) {
    const PlanProposal proposal = proposed();
    sent_.clear();
    answer(10, proposal.number, false);
  }
  EXPECT_TRUE(sent_to<proto::PlanProposal>(10).empty());
  EXPECT_EQ(state(), "given up");
}

// As where not every step reduces all tensors.
TEST_F(PlanDirectorTuningTest, TimesThatDoNotComeEndItWithWhatIsConfigured) {
  make_tuned();
  begin_tuning();
  adopt();
  step_ += JobTuning::kStepsWithoutTimeMax / 2;
  tell_all(report(plan_));
  EXPECT_TRUE(sent_.empty());
  step_ += 2 * JobTuning::kStepsWithoutTimeMax;
  tell_all(report(plan_));
  adopt();
  EXPECT_EQ(in_force_, defaults());
  EXPECT_FALSE(reports_steps_);
  EXPECT_EQ(state(), "given up");
  EXPECT_EQ(counters_.gain, 0) << "nothing was found";
}

TEST_F(PlanDirectorTuningTest, WhereItIsOffNothingIsTuned) {
  make();
  register_all();
  run_first();
  for (uint32_t round = 0; round < 2; ++round) tell_all(report(1));
  EXPECT_TRUE(sent_to<proto::PlanProposal>(10).empty());
  EXPECT_EQ(director_->tuning_json(), "[]");
}

TEST_F(PlanDirectorTuningTest, NodesThatHaveOtherTensorsAreNotTuned) {
  make_tuned(/*is_planned=*/false);
  register_set(10, 77);
  register_set(20, 78);
  tell_all(report(0));
  EXPECT_TRUE(sent_.empty());
}

}  // namespace
}  // namespace braid
