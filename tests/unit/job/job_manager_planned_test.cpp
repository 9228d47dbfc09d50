// SPDX-License-Identifier: Apache-2.0
// Planned tensors from their registration to their results, through the client socket and the
// rings.
#include <algorithm>
#include <cstring>

#include "base/errors_testing.h"
#include "job/manager_world.h"
#include "messages/plan_messages.h"
#include "planning/plan_testing.h"
#include "proto/update.h"

namespace braid {
namespace {

using testing::groups_of;
using testing::is_error;
using testing::names;
using testing::TestTrainer;

constexpr std::pair<const char*, uint64_t> kTensors[] = {{"t0", 10}, {"t1", 20}};

class JobManagerPlannedTest : public testing::JobManagerTest {
 protected:
  // Two ranks of this node; 'w' is handle 0 and not planned, 't0' and 't1' are 1 and 2.
  void open_planned_job() {
    open_job(2, 10);
    register_tensors();
  }
  void register_tensors() {
    for (auto& trainer : trainers_)
      trainer->register_tensors({std::begin(kTensors), std::end(kTensors)}, DataType::Float32,
                                true);
    wait_for_all([](const auto& trainer) { return !trainer.registered.empty(); });
    settle();
    for (auto& trainer : trainers_) trainer->poll();
  }
  // Both ranks are here, the coordinator is b; 't0' and 't1' are 0 and 1.
  void open_planned_job_of_b() {
    open_job_on({{self_, {0, 1}}});
    register_tensors();
  }
  // As the coordinator proposes it to all nodes, in vain or not.
  PlanProposal hear_proposal(const std::vector<std::vector<uint32_t>>& groups = {{1, 0}}) {
    PlanProposal proposed;
    proposed.job_key = kKey;
    proposed.set = set_of_planned();
    proposed.number = 1;
    proposed.from_step = 3;
    proposed.groups = groups_of(groups, JobHash(kKey));
    proposed.planner = "exact";
    hear(b_, make_plan_proposal(proposed));
    return proposed;
  }
  // As the tensors' registration names it.
  uint64_t set_of_planned() {
    std::vector<TestTrainer::Described> described;
    for (const auto& [name, count] : kTensors)
      described.push_back({.name = name, .count = count, .is_planned = true});
    return testing::read_registration(described, JobHash(kKey))->set;
  }
  Status failure_of_all() {
    wait_for([&] { return !trainers_[0]->failure.is_ok() && !trainers_[1]->failure.is_ok(); });
    EXPECT_EQ(trainers_[0]->failure.message(), trainers_[1]->failure.message());
    return trainers_[0]->failure;
  }
};

TEST_F(JobManagerPlannedTest, MergedTensorsGetTheirOwnSums) {
  open_planned_job();
  for (auto& trainer : trainers_) {
    std::fill_n(trainer->floats(4096), 10, 1.0f);
    std::fill_n(trainer->floats(0), 20, 5.0f);
    trainer->submit(1, 1, 0, 4096);
    trainer->submit(2, 2, 0, 0);
  }
  wait_for([&] { return trainers_[0]->done.size() == 2 && trainers_[1]->done.size() == 2; });
  EXPECT_EQ(counters_.operations[static_cast<size_t>(Collective::AllReduce)], 1u);
  for (auto& trainer : trainers_) {
    for (const proto::DoneEntry& done : trainer->done) {
      EXPECT_EQ(done.result_bytes, done.ticket == 1 ? 40u : 80u);
      for (uint64_t i = 0; i < done.result_bytes / 4; ++i)
        ASSERT_EQ(trainer->result(done)[i], done.ticket == 1 ? 2.0f : 10.0f);
    }
    trainer->release(2);
    trainer->release(1);
  }
  settle();
  EXPECT_TRUE(trainers_[0]->failure.is_ok());
}

// Modulo 2^64 both have 17 elements together.
TEST_F(JobManagerPlannedTest, WeightsWhoseCountsDoNotAddUpAreRefusedAndTheJobGoesOn) {
  open_job(1, 10);
  TestTrainer& trainer = *trainers_[0];
  const TestTrainer::Described weights{"v", 0, 1000, false, true, 0, nullptr, 1};
  TestTrainer::Described rest = weights;
  rest.name = "rest";
  rest.count = UINT64_MAX - 1000 + 18;
  trainer.register_described(std::vector{weights, rest});
  wait_for([&] { return !trainer.refusal.empty(); });
  EXPECT_TRUE(
      names(trainer.refusal, {"'rest'", "18446744073709550633 elements", "281474976710656 bytes"}));
  trainer.register_described(std::vector{weights});
  wait_for([&] { return trainer.registered.size() == 2; });
  std::fill_n(trainer.floats(4096), 1000, 3.0f);
  proto::UpdateEntry load{};
  load.action = static_cast<uint8_t>(UpdateAction::Load);
  std::memcpy(trainer.floats(0), &load, sizeof(load));
  trainer.submit(1, 1, 0, 4096);
  wait_for([&] { return trainer.done.size() == 1; });
  EXPECT_EQ(trainer.done[0].result_bytes, 4000u);
  EXPECT_EQ(trainer.result(trainer.done[0])[999], 3.0f);
}

TEST_F(JobManagerPlannedTest, APlannedTensorIsAnAllReduceAndNothingElse) {
  open_planned_job();
  trainers_[0]->submit(1, 1, 0, 0, [](proto::SubmitEntry& entry) {
    entry.collective = static_cast<uint8_t>(Collective::Broadcast);
  });
  EXPECT_TRUE(is_error(failure_of_all(), StatusCode::InvalidArgument, {"rank 0", "'t0'"}));
}

TEST_F(JobManagerPlannedTest, TensorsOfARefusedRegistrationAreNotThereAndTheRightOnesMayFollow) {
  open_job(2, 10);
  trainers_[0]->register_tensors({{"t0", 10}, {"t1", 20}}, DataType::Float32, true);
  wait_for([&] { return trainers_[0]->registered.size() == 2; });
  trainers_[1]->register_tensors({{"t0", 10}, {"t1", 21}}, DataType::Float32, true);
  wait_for([&] { return !trainers_[1]->refusal.empty(); });
  EXPECT_TRUE(names(trainers_[1]->refusal, {"rank 1 registers 't0'"}));
  trainers_[1]->register_tensors({{"t0", 10}, {"t1", 20}}, DataType::Float32, true);
  wait_for([&] { return trainers_[1]->registered.size() == 2; });
  EXPECT_EQ(trainers_[1]->registered[1], 1u);
  trainers_[1]->submit(1, 3, 0);
  EXPECT_TRUE(is_error(failure_of_all(), StatusCode::NotFound, {"rank 1", "tensor 3"}));
}

TEST_F(JobManagerPlannedTest, AProposalIsAnsweredAndItsPlanHolds) {
  open_planned_job_of_b();
  const PlanProposal proposed = hear_proposal();
  const auto answers = sent_to_b<proto::PlanAnswer>();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0]->accepted());
  for (auto& trainer : trainers_) {
    trainer->submit(1, 0, 3);
    trainer->submit(2, 1, 3);
  }
  settle();
  EXPECT_EQ(manager_->jobs().operations_pending(), 0u);  // kept back
  hear(b_, make_plan_verdict(proposed, true));
  wait_for([&] { return trainers_[0]->done.size() == 2 && trainers_[1]->done.size() == 2; });
  EXPECT_EQ(counters_.operations[static_cast<size_t>(Collective::AllReduce)], 1u);
  // In the new plan's order.
  const auto& done = trainers_[0]->done;
  EXPECT_EQ(done[1].ticket == 2 ? done[0].result_offset - done[1].result_offset
                                : done[1].result_offset - done[0].result_offset,
            80u);
}

// What it had submitted counts, although a plan keeps it back.
TEST_F(JobManagerPlannedTest, ARankMayLeaveWhileItsSubmissionsAreKeptBack) {
  open_planned_job_of_b();
  const PlanProposal proposed = hear_proposal();
  for (auto& trainer : trainers_) {
    trainer->submit(1, 0, 3);
    trainer->submit(2, 1, 3);
  }
  settle();
  trainers_[1]->leave();
  wait_for([&] { return trainers_[1]->has_left; });
  hear(b_, make_plan_verdict(proposed, true));
  wait_for([&] { return trainers_[0]->done.size() == 2 || !trainers_[0]->failure.is_ok(); });
  EXPECT_TRUE(trainers_[0]->failure.is_ok()) << trainers_[0]->failure.message();
  EXPECT_TRUE(sent_to_b<proto::FailJob>().empty());
}

// Nobody compares what is kept back.
TEST_F(JobManagerPlannedTest, RanksThatDisagreeAboutWhatWasKeptBackFailTheJob) {
  open_planned_job_of_b();
  const PlanProposal proposed = hear_proposal();
  trainers_[0]->submit(1, 0, 3);
  trainers_[1]->submit(1, 0, 3, 0, [](proto::SubmitEntry& entry) {
    entry.reduction = static_cast<uint8_t>(Reduction::Max);
  });
  const PlanBook& plans = manager_->jobs().find(kKey)->plans();
  wait_for([&] { return plans.holds_submissions_of(0) && plans.holds_submissions_of(1); });
  EXPECT_TRUE(sent_to_b<proto::FailJob>().empty());
  hear(b_, make_plan_verdict(proposed, true));
  ASSERT_EQ(sent_to_b<proto::FailJob>().size(), 1u);
  EXPECT_TRUE(is_error(failure_told_to_b(), StatusCode::Mismatch, {"'t0' step 3", "rank 1"}));
}

// Nobody says whether the plan holds.
TEST_F(JobManagerPlannedTest, WhatIsKeptBackForTooLongFailsTheJob) {
  open_planned_job_of_b();
  hear_proposal();
  trainers_[0]->submit(1, 0, 3, 0, [](proto::SubmitEntry& entry) { entry.timeout_ms = 1; });
  EXPECT_TRUE(is_error(failure_told_to_b(), StatusCode::DeadlineExceeded,
                       {"'t0' step 3", "1 ms", "plan 1"}));
}

TEST_F(JobManagerPlannedTest, ACoordinatorThatProposesNonsenseFailsTheJob) {
  open_planned_job_of_b();
  hear_proposal({{0}});
  EXPECT_TRUE(names(failure_told_to_b().message(), {"the coordinator: a plan leaves out tensors"}));
}

}  // namespace
}  // namespace braid
