// SPDX-License-Identifier: Apache-2.0
// The coordinator tunes what it plans.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "planning/plan_director_testing.h"

namespace braid {
namespace {

using testing::as_message;

class PlanDirectorTuningTest : public testing::PlanDirectorTest {
 protected:
  static constexpr uint32_t kSteps = 72;

  void make_tuned(bool is_planned = true) {
    PlanningOptions options;
    if (is_planned) options.planner = *find_planner("exact");
    options.streams = 1;
    options.tuning.is_on = true;
    options.tuning.defaults = defaults();
    options.tuning.steps = kSteps;
    options.tuning.pinned = pinned_;
    options.tuning.knowledge = &knowledge_;
    options.tuning.counters = &counters_;
    start(options);
  }
  static TransferSettings defaults() {
    TransferSettings settings;
    settings.flows = 1;
    settings.streams = 1;
    settings.chunk_bytes = 64 << 10;
    return settings;
  }
  void register_set(NodeId from, uint64_t tensors_hash = 77) {
    auto message = make_set_registered({9, kSet, tensors_hash, 4'000'000, 4});
    director_->on_set_registered(from, *as_message(message).body_as_SetRegistered());
  }
  void register_all() {
    for (const NodeId node : kNodes) register_set(node);
  }
  // How long a step takes, the slowest flow count first: a cap on each flow, and some startup.
  static uint64_t step_ns(const TransferSettings& settings) {
    const double flows = std::min(settings.flows, 4u);
    return static_cast<uint64_t>(1e6 * (10 + 80 / flows + 10.0 / settings.streams));
  }
  void tell_step(NodeId from, uint32_t plan, uint64_t step, uint64_t nanoseconds) {
    auto message = make_step_report({9, kSet, plan, step, nanoseconds});
    director_->on_step_report(from, *as_message(message).body_as_StepReport());
  }
  // Steps until the tuning is over: nodes accept what is proposed, and say what steps take. How
  // many steps it took.
  uint64_t train(uint64_t steps_max = 500) {
    uint64_t step = step_;
    for (; step < step_ + steps_max && !is_over(); ++step) {
      if (!sent_.empty()) adopt();
      if (!in_force_) continue;
      tell_step(10, plan_, step, step_ns(*in_force_) / 2);
      tell_step(20, plan_, step, step_ns(*in_force_));
    }
    return step - step_;
  }
  void adopt() {
    const PlanProposal proposal = proposed();
    EXPECT_TRUE(proposal.settings.has_value());
    EXPECT_TRUE(proposal.groups.empty());
    plan_ = proposal.number;
    in_force_ = proposal.settings;
    reports_steps_ = proposal.reports_steps;
    flows_open_ = std::max(flows_open_, proposal.flows_open);
    EXPECT_GE(flows_open_, in_force_->flows);
    accept();
  }
  bool is_over() const {
    return nlohmann::json::parse(director_->tuning_json()).value("state", "") == "over";
  }

  KnowledgeStore knowledge_{""};
  TuningCounters counters_;
  std::vector<std::string> pinned_;
  uint32_t plan_ = 0;
  std::optional<TransferSettings> in_force_;
  bool reports_steps_ = false;
  uint32_t flows_open_ = 0;
};

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

TEST_F(PlanDirectorTuningTest, FindsWhatIsFasterAndRemembersIt) {
  make_tuned();
  register_all();
  run_first();
  tell_all(report(1));
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
  register_all();
  run_first();
  tell_all(report(1));
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
  register_all();
  run_first();
  tell_all(report(1));
  adopt();
  for (uint32_t round = 0; round < 100; ++round) tell_all(report(plan_, Early::EvenOnes));
  EXPECT_TRUE(sent_.empty());
  train();
  PlanReport next = report(plan_, Early::EvenOnes);
  add_units(next);
  tell_all(next);
  const PlanProposal proposal = proposed();
  EXPECT_FALSE(proposal.keeps_groups());
  EXPECT_FALSE(proposal.settings.has_value());
}

// The known settings hold as plan 1 and more, before there are groups of which another network
// could change what is to be expected.
TEST_F(PlanDirectorTuningTest, AnotherNetworkBeforeTheFirstGroupsProposesNothing) {
  make_tuned();
  register_all();
  run_first();
  tell_all(report(1));
  train();
  step_ = 0;
  in_force_.reset();
  make_tuned();
  register_all();
  train();
  ASSERT_TRUE(is_over());
  PlanReport slow = report(plan_);
  add_units(slow);
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
  for (uint32_t i = 0; i < PlanDirector::kTuningRefusalsMax; ++i) {
    const PlanProposal proposal = proposed();
    sent_.clear();
    answer(10, proposal.number, false);
  }
  EXPECT_TRUE(sent_to<proto::PlanProposal>(10).empty());
  EXPECT_EQ(nlohmann::json::parse(director_->tuning_json())["state"], "given up");
}

// As where not every step reduces all tensors.
TEST_F(PlanDirectorTuningTest, TimesThatDoNotComeEndItWithWhatIsConfigured) {
  make_tuned();
  register_all();
  run_first();
  tell_all(report(1));
  adopt();
  step_ += JobTuning::kStepsWithoutTimeMax / 2;
  tell_all(report(plan_));
  EXPECT_TRUE(sent_.empty());
  step_ += 2 * JobTuning::kStepsWithoutTimeMax;
  tell_all(report(plan_));
  adopt();
  EXPECT_EQ(in_force_, defaults());
  EXPECT_FALSE(reports_steps_);
  EXPECT_EQ(nlohmann::json::parse(director_->tuning_json())["state"], "given up");
  EXPECT_EQ(counters_.gain, 0) << "nothing was found";
}

TEST_F(PlanDirectorTuningTest, WhereItIsOffNothingIsTuned) {
  make();
  register_all();
  run_first();
  for (uint32_t round = 0; round < 2; ++round) tell_all(report(1));
  EXPECT_TRUE(sent_to<proto::PlanProposal>(10).empty());
  EXPECT_EQ(director_->tuning_json(), "null");
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
