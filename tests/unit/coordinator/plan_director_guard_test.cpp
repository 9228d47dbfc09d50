// SPDX-License-Identifier: Apache-2.0
// The coordinator sends back to plain elements what loses too much.
#include "coordinator/plan_director_testing.h"

namespace braid {
namespace {

using testing::as_message;
using testing::PlanDirectorTuningTest;

class PlanDirectorGuardTest : public PlanDirectorTuningTest {
 protected:
  ~PlanDirectorGuardTest() override { director_.reset(); }  // which has the board
  static PlanningOptions guarded() {
    PlanningOptions options;
    options.guard.every_steps = 10;
    options.guard.saturation_max = 0.5;
    return options;
  }
  // Without a planner and without tuning.
  void make_guarded() {
    PlanningOptions options = guarded();
    options.guard.board = &board_;
    start(options);
  }
  void make_guarded_and_tuned() {
    PlanningOptions options = guarded();
    options.streams = 1;
    options.tuning.is_on = true;
    options.tuning.defaults = defaults();
    options.tuning.steps = kSteps;
    options.tuning.knowledge = &knowledge_;
    start(options);
    register_all();
    step_ = 20;
    tell_all(report(0));
  }
  void tell_sample(NodeId from, double saturation, const std::vector<uint64_t>& tensors) {
    CodecSample sample;
    sample.job_key = 9;
    sample.set = set_;
    sample.step = step_;
    sample.tensors = tensors;
    sample.codec = *parse_codec_spec("2bit:threshold=0.25");
    sample.loss.elements = 100;
    sample.loss.saturated = static_cast<uint64_t>(saturation * 100);
    auto message = make_codec_sample(sample);
    director_->on_control_message(from, as_message(message));
  }
  // Both nodes', in the next sampled step.
  void read(double saturation, const std::vector<uint64_t>& tensors = {100, 101}) {
    step_ += 10;
    for (const NodeId node : kNodes) tell_sample(node, saturation, tensors);
  }
  void pass_limit(const std::vector<uint64_t>& tensors = {100, 101}) {
    for (int i = 0; i < 3; ++i) read(0.9, tensors);
  }
  // One node is in a step already, all others have accepted.
  void refuse(uint64_t step) {
    const uint32_t number = proposed().number;
    sent_.clear();
    step_ = step;
    answer(10, number, true);
    answer(20, number, false);
    forget_verdicts();
  }

  GuardBoard board_;
};

TEST_F(PlanDirectorGuardTest, ProposesThatTheGroupGoesPlain) {
  make_guarded();
  read(0.9);
  read(0.9);
  EXPECT_TRUE(sent_.empty());
  read(0.9);
  const PlanProposal proposal = proposed();
  EXPECT_TRUE(proposal.is_plain());
  EXPECT_EQ(proposal.set, kSet);
  EXPECT_GT(proposal.from_step, step_);
  EXPECT_TRUE(proposal.groups.empty());
  EXPECT_FALSE(proposal.settings.has_value());
  ASSERT_EQ(proposal.plain.size(), 1u);
  EXPECT_EQ(proposal.plain[0].tensors, (std::vector<uint64_t>{100, 101}));
  EXPECT_EQ(proposal.plain[0].limit, GuardLimit::Saturation);
  EXPECT_DOUBLE_EQ(proposal.plain[0].measured, 0.9);
  EXPECT_EQ(proposal.plain[0].allowed, 0.5);
  EXPECT_EQ(board_.plain_groups(), 0u);
  accept();
  EXPECT_EQ(board_.plain_groups(), 1u);
  pass_limit();
  EXPECT_TRUE(sent_.empty()) << "it is plain";
}

TEST_F(PlanDirectorGuardTest, IsProposedAgainUntilItHolds) {
  make_guarded();
  pass_limit();
  uint64_t notice = 0;
  for (const uint64_t step : {1000, 2000, 3000}) {
    refuse(step);
    EXPECT_TRUE(proposed().is_plain());
    EXPECT_GT(proposed().from_step, step + notice) << "with more notice";
    notice = proposed().from_step - step;
  }
  accept();
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(board_.plain_groups(), 1u);
}

TEST_F(PlanDirectorGuardTest, WhatComesMeanwhileFollows) {
  make_guarded();
  pass_limit({100, 101});
  ASSERT_EQ(proposed().plain.size(), 1u);
  pass_limit({102});
  ASSERT_EQ(sent_to<proto::PlanProposal>(10).size(), 1u) << "one at a time";
  const uint64_t from_step = proposed().from_step;
  accept();
  const PlanProposal second = proposed();
  ASSERT_EQ(second.plain.size(), 1u);
  EXPECT_EQ(second.plain[0].tensors, (std::vector<uint64_t>{102}));
  EXPECT_GT(second.from_step, from_step);
  accept();
  EXPECT_TRUE(sent_.empty());
}

TEST_F(PlanDirectorGuardTest, WaitsForAPlanThatIsBeingAgreedOn) {
  PlanningOptions options = guarded();
  make(options);
  tell_all(measured(0));
  EXPECT_FALSE(proposed().is_plain());
  const uint64_t from_step = proposed().from_step;
  pass_limit();
  step_ = 7;
  EXPECT_FALSE(proposed().is_plain());
  accept();
  EXPECT_TRUE(proposed().is_plain());
  EXPECT_GT(proposed().from_step, from_step);
}

TEST_F(PlanDirectorGuardTest, PlansThatFollowPartTheGroupsThatHold) {
  make(guarded());
  run_first();  // {100, 101}, {102, 103}
  pass_limit({100});
  EXPECT_TRUE(proposed().is_plain());
  accept();
  // The nodes say so in their reports, and no plan merges both.
  for (uint32_t round = 0; round < 40 && sent_.empty(); ++round) {
    PlanReport next = report(2, Early::EvenOnes);
    next.codecs = {0, 1, 1, 1};
    next.iteration_ns = round < 5 ? kIterationNs : kIterationNs * 2;
    add_units(next, 10'000'000);
    tell_all(next);
  }
  const PlanProposal proposal = proposed();
  ASSERT_FALSE(proposal.groups.empty());
  for (const auto& group : proposal.groups) {
    if (std::find(group.begin(), group.end(), 100) != group.end()) {
      EXPECT_EQ(group.size(), 1u);
    }
  }
}

// A plan that was just being made is dropped: it is for other groups.
TEST_F(PlanDirectorGuardTest, ReportsOfThePlanBeforeCountNoMore) {
  make(guarded());
  run_first();
  pass_limit({100});
  accept();
  for (uint32_t round = 0; round < 10; ++round) tell_all(report(1, Early::EvenOnes));
  EXPECT_TRUE(sent_.empty());
}

TEST_F(PlanDirectorGuardTest, ComesBetweenTwoSettingsThatAreTried) {
  make_guarded_and_tuned();
  ASSERT_TRUE(proposed().settings.has_value());
  pass_limit();
  ASSERT_TRUE(proposed().settings.has_value()) << "what was proposed first ends first";
  adopt();
  ASSERT_TRUE(proposed().is_plain());
  const uint32_t number = proposed().number;
  accept();
  EXPECT_TRUE(sent_.empty()) << "the settings are measured";
  // Those are still the ones of the plan before: its steps count, and those of this one.
  const uint32_t before = plan_;
  for (uint64_t step = step_; sent_.empty() && step < step_ + 40; ++step) {
    for (const NodeId node : kNodes)
      tell_step(node, step < step_ + 3 ? before : number, step, 1'000'000);
  }
  EXPECT_TRUE(proposed().settings.has_value());
  train();
  EXPECT_TRUE(is_over());
}

TEST_F(PlanDirectorGuardTest, IsNotLostWhileSettingsAreRefused) {
  make_guarded_and_tuned();
  pass_limit();
  ASSERT_TRUE(proposed().settings.has_value());
  refuse(500);
  ASSERT_TRUE(proposed().is_plain());
  refuse(600);
  ASSERT_TRUE(proposed().is_plain());
  accept();
  EXPECT_TRUE(proposed().settings.has_value()) << "and the settings follow";
}

// Both nodes would refuse it for ever.
TEST_F(PlanDirectorGuardTest, ASetThatANodeHasNoMoreKeepsItsCodecs) {
  make_guarded();
  read(0.9);
  read(0.9);
  EXPECT_FALSE(director_->guard().readings().empty());
  unregister(10);
  read(0.9);
  EXPECT_TRUE(sent_.empty());
  set_ = kOtherSet;
  read(0.9);
  unregister_all();
  EXPECT_TRUE(director_->guard().readings().empty());
}

TEST_F(PlanDirectorGuardTest, ShowsTheWorstAndForgetsItWithTheJob) {
  make_guarded();
  read(0.25, {100, 101});
  read(0.5, {102});
  run_until([this] { return !board_.entries().empty(); });
  const auto entries = board_.entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].job, "train");
  EXPECT_EQ(entries[0].codec, "2bit:threshold=0.25");
  EXPECT_EQ(entries[0].saturation, 0.5);
  EXPECT_EQ(director_->guard().readings().size(), 2u);
  director_.reset();
  EXPECT_TRUE(board_.entries().empty());
}

}  // namespace
}  // namespace braid
