// SPDX-License-Identifier: Apache-2.0
// Every set of a job is tuned, one after the other, and all of them again on another network.
#include "coordinator/plan_director_testing.h"

namespace braid {
namespace {

class PlanDirectorRetuningTest : public testing::PlanDirectorTuningTest {
 protected:
  // From the set's registration until its tuning is over.
  void tune_set(uint64_t tensors_hash) {
    register_all(tensors_hash);
    begin_first_trial();
    train();
    ASSERT_TRUE(is_over());
  }
  // To a set whose settings are not known yet.
  void turn_to(uint64_t set) {
    set_ = set;
    in_force_.reset();
  }
  // The set's first plan settles.
  void begin_first_trial() {
    run_first();
    tell_all(report(1));
    ASSERT_FALSE(sent_.empty());
  }
  // Rounds of reports on a network whose all-reduces take `slower` times as long; plans are agreed
  // on. Until other settings are proposed; whether they were.
  bool run_rounds(uint64_t slower, int rounds = 8) {
    for (int round = 0; round < rounds; ++round) {
      PlanReport one = measured(plan_);
      for (PlanReport::MeasuredOperation& operation : one.operations)
        operation.nanoseconds *= slower;
      tell_all(one);
      if (sent_.empty()) continue;
      const PlanProposal proposal = proposed();
      if (proposal.settings.has_value()) return true;
      plan_ = proposal.number;
      accept();
    }
    return false;
  }
  // Steps of which nothing was heard.
  void skip_steps(uint64_t steps) { step_ += steps; }
};

TEST_F(PlanDirectorRetuningTest, SetsAreTunedOneAfterTheOther) {
  make_tuned();
  set_ = kOtherSet;
  register_all(78);
  set_ = kSet;
  register_all(77);
  begin_first_trial();
  set_ = kOtherSet;
  for (int round = 0; round < 5; ++round) tell_all(report(0));
  EXPECT_EQ(sent_to<proto::PlanProposal>(10).size(), 1u) << "one at a time";
  EXPECT_EQ(state(), "waiting");
  set_ = kSet;
  train();
  ASSERT_TRUE(is_over());

  turn_to(kOtherSet);
  begin_first_trial();
  EXPECT_EQ(proposed().set, kOtherSet);
  train();
  EXPECT_TRUE(is_over());
  EXPECT_LT(step_ns(*in_force_), step_ns(defaults()) / 2) << "its units are small now";
}

TEST_F(PlanDirectorRetuningTest, ALaterSetKeepsWhatHoldsForTheWholeJob) {
  make_tuned();
  tune_set(77);
  const nlohmann::json first = tuning();
  const TransferSettings leader = *in_force_;
  ASSERT_NE(leader.flows, defaults().flows);
  turn_to(kOtherSet);
  flows_open_ = 0;
  tune_set(78);
  const nlohmann::json second = tuning();
  ASSERT_GT(second.at("trials").size(), 3u);
  for (const auto& trial : second.at("trials")) {
    EXPECT_EQ(trial.at("values").at("flows_per_link"), leader.flows);
    EXPECT_EQ(trial.at("values").at("streams"), leader.streams);
    EXPECT_EQ(trial.at("values").at("window_bytes"), leader.window_bytes);
  }
  EXPECT_EQ(flows_open_, leader.flows);
  set_ = kSet;
  EXPECT_EQ(tuning(), first);
}

TEST_F(PlanDirectorRetuningTest, TheNextStartTakesUpAllSetsOneAfterTheOther) {
  make_tuned();
  tune_set(77);
  turn_to(kOtherSet);
  tune_set(78);

  make_tuned();
  step_ = 0;
  for (const auto& [set, tensors_hash] : {std::pair{kSet, 77u}, std::pair{kOtherSet, 78u}}) {
    set_ = set;
    register_all(tensors_hash);
  }
  EXPECT_EQ(proposed().set, kSet);
  turn_to(kSet);
  EXPECT_LE(train(), 10u);
  turn_to(kOtherSet);
  EXPECT_LE(train(), 10u);
  EXPECT_TRUE(is_over());
}

TEST_F(PlanDirectorRetuningTest, ASetThatComesNoMoreDoesNotHoldUpTheOthers) {
  make_tuned();
  tune_set(77);
  set_ = kOtherSet;
  register_all(78);
  begin_first_trial();
  adopt();
  const uint32_t other_plan = plan_;
  set_ = kSet;
  for (uint32_t round = 0; round < TuningTurns::kRoundsOfOthersMax; ++round) {
    EXPECT_TRUE(sent_.empty());
    tell_all(report(other_plan));
  }
  set_ = kOtherSet;
  EXPECT_EQ(state(), "given up");
  adopt();
  EXPECT_FALSE(reports_steps_);
}

TEST_F(PlanDirectorRetuningTest, AnotherNetworkIsTunedForWhenItHasLastedForSomeTime) {
  make_tuned();
  tune_set(77);
  const TransferSettings found = *in_force_;
  EXPECT_FALSE(run_rounds(1));
  EXPECT_FALSE(run_rounds(3)) << "too soon after the last tuning";
  skip_steps(TuningTurns::kStepsBetweenTuningsMin + 200);
  EXPECT_FALSE(run_rounds(1)) << "it is the same again";
  EXPECT_FALSE(run_rounds(3, TuningTurns::kOtherNetworkRoundsMin - 1)) << "too few rounds";
  ASSERT_TRUE(run_rounds(3));
  EXPECT_EQ(proposed().settings, found) << "what holds is the incumbent";
  in_force_.reset();
  train();
  EXPECT_TRUE(is_over());
  EXPECT_EQ(tuning().at("number"), 2);
  EXPECT_EQ(tuning().at("known"), nullptr) << "it was learned on another network";
  const nlohmann::json trials = tuning().at("trials");
  EXPECT_EQ(trials[1].at("values").at("flows_per_link"), defaults().flows);
}

TEST_F(PlanDirectorRetuningTest, EachTuningKeepsTheNextOneAwayForTwiceAsLong) {
  make_tuned();
  tune_set(77);
  EXPECT_FALSE(run_rounds(1));
  skip_steps(TuningTurns::kStepsBetweenTuningsMin + 200);
  ASSERT_TRUE(run_rounds(3));
  train();
  skip_steps(kSteps);
  EXPECT_FALSE(run_rounds(3)) << "it was tuned for this one";
  skip_steps(TuningTurns::kStepsBetweenTuningsMin + 200);
  EXPECT_FALSE(run_rounds(1)) << "twice as many steps now";
  skip_steps(TuningTurns::kStepsBetweenTuningsMin);
  EXPECT_TRUE(run_rounds(1));
}

TEST_F(PlanDirectorRetuningTest, AllSetsAreTunedAgainTheLeaderFirst) {
  make_tuned();
  tune_set(77);
  EXPECT_FALSE(run_rounds(1));
  const uint32_t leaders_plan = plan_;
  turn_to(kOtherSet);
  tune_set(78);
  const uint32_t others_plan = plan_;
  skip_steps(TuningTurns::kStepsBetweenTuningsMin + 200);
  EXPECT_FALSE(run_rounds(1));
  EXPECT_FALSE(run_rounds(3)) << "the leader tells";
  const uint32_t others_last_plan = plan_;
  EXPECT_GE(others_last_plan, others_plan);
  set_ = kSet;
  plan_ = leaders_plan;
  EXPECT_FALSE(run_rounds(1));
  ASSERT_TRUE(run_rounds(3));
  EXPECT_EQ(proposed().set, kSet);
  set_ = kOtherSet;
  EXPECT_EQ(state(), "waiting");
  EXPECT_EQ(tuning().at("number"), 2);
  turn_to(kSet);
  train();
  set_ = kOtherSet;
  plan_ = others_last_plan;
  EXPECT_TRUE(run_rounds(3));
  EXPECT_EQ(proposed().set, kOtherSet);
}

}  // namespace
}  // namespace braid
