// SPDX-License-Identifier: Apache-2.0
// Planned tensors from their registration to their results, through the client socket and the
// rings.
#include <algorithm>
#include <cstring>

#include "job/manager_world.h"
#include "messages/plan_messages.h"
#include "planning/plan_testing.h"
#include "proto/update.h"

namespace braid {
namespace {

using testing::groups_of;
using testing::TestTrainer;

constexpr std::pair<const char*, uint64_t> kTensors[] = {{"t0", 10}, {"t1", 20}};

class JobManagerPlannedTest : public testing::JobManagerTest {
 protected:
  // Two ranks of this node; 'w' is handle 0 and not planned, 't0' and 't1' are 1 and 2.
  void open_planned_job() {
    open_job(2, 10);
    register_planned();
  }
  void register_planned() {
    for (auto& trainer : trainers_)
      trainer->register_tensors({std::begin(kTensors), std::end(kTensors)}, DataType::Float32,
                                true);
    wait_for([&] {
      return std::all_of(trainers_.begin(), trainers_.end(),
                         [](const auto& trainer) { return !trainer->registered.empty(); });
    });
    settle();
    for (auto& trainer : trainers_) trainer->poll();
  }
  // Both ranks are here, the coordinator is b; 't0' and 't1' are 0 and 1.
  void open_planned_job_of_b() {
    for (uint32_t rank = 0; rank < 2; ++rank) add_trainer().open("train", rank, 2, b_.address);
    wait_for([&] { return control_plane_.sent_to<proto::JoinJob>(b_.id).size() == 2; });
    const std::vector<MemberNode> nodes = {{self_, {0, 1}}};
    hear(b_, make_job_start("train", 2, 4, kKey, nodes));
    wait_for([&] { return !control_plane_.sent_to<proto::JobReady>(b_.id).empty(); });
    hear(b_, make_job_go(kKey));
    wait_for([&] { return trainers_[0]->is_open && trainers_[1]->is_open; });
    register_planned();
  }
  PlanProposal proposal(uint64_t from_step) {
    PlanProposal result;
    result.job_key = kKey;
    result.number = 1;
    result.from_step = from_step;
    result.groups = groups_of({{1, 0}}, JobHash(kKey));
    result.planner = "exact";
    return result;
  }
  // As the tensors' registration names it.
  uint64_t set_of_planned() {
    flatbuffers::FlatBufferBuilder builder;
    std::vector<flatbuffers::Offset<proto::TensorDescription>> descriptions;
    for (const auto& [name, count] : kTensors) {
      descriptions.push_back(
          proto::CreateTensorDescriptionDirect(builder, name, 0, count, 0, false, true));
    }
    builder.Finish(proto::CreateRegisterTensorsDirect(builder, &descriptions));
    return RegisteredTensors::read(
               *flatbuffers::GetRoot<proto::RegisterTensors>(builder.GetBufferPointer()),
               JobHash(kKey), CodecKinds())
        ->set;
  }
  Status failure_of_all() {
    wait_for([&] { return !trainers_[0]->failure.is_ok() && !trainers_[1]->failure.is_ok(); });
    EXPECT_EQ(trainers_[0]->failure.message(), trainers_[1]->failure.message());
    return trainers_[0]->failure;
  }

  static constexpr uint64_t kKey = 99;
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
  const TestTrainer::Described weights{"v", 1000, 0, 0, false, true, nullptr, 1};
  TestTrainer::Described rest = weights;
  rest.name = "rest";
  rest.count = UINT64_MAX - 1000 + 18;
  trainer.register_described(std::vector{weights, rest});
  wait_for([&] { return !trainer.refusal.empty(); });
  EXPECT_EQ(trainer.refusal,
            "tensor 'rest' has 18446744073709550633 elements of float32; a tensor has "
            "281474976710656 bytes at most");
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
  const Status failure = failure_of_all();
  EXPECT_EQ(failure.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(failure.message(),
            "job 'train': rank 0: 't0' is planned; each step submits it by itself, as an "
            "all-reduce");
}

TEST_F(JobManagerPlannedTest, TensorsOfARefusedRegistrationAreNotThere) {
  open_job(2, 10);
  trainers_[0]->register_tensors({{"t0", 10}, {"t1", 20}}, DataType::Float32, true);
  wait_for([&] { return trainers_[0]->registered.size() == 2; });
  trainers_[1]->register_tensors({{"t0", 10}, {"t1", 21}}, DataType::Float32, true);
  wait_for([&] { return !trainers_[1]->refusal.empty(); });
  EXPECT_NE(trainers_[1]->refusal.find("rank 1 registers 't0'"), std::string::npos);
  trainers_[1]->submit(1, 1, 0);
  EXPECT_EQ(failure_of_all().message(),
            "job 'train': rank 1: submitted tensor 1, which it has not registered");
}

TEST_F(JobManagerPlannedTest, TheRightTensorsCanFollowARefusal) {
  open_job(2, 10);
  trainers_[0]->register_tensors({{"t0", 10}, {"t1", 20}}, DataType::Float32, true);
  wait_for([&] { return trainers_[0]->registered.size() == 2; });
  trainers_[1]->register_tensors({{"t0", 10}, {"t1", 21}}, DataType::Float32, true);
  wait_for([&] { return !trainers_[1]->refusal.empty(); });
  trainers_[1]->register_tensors({{"t0", 10}, {"t1", 20}}, DataType::Float32, true);
  wait_for([&] { return trainers_[1]->registered.size() == 2; });
  EXPECT_EQ(trainers_[1]->registered[1], 1u);
}

TEST_F(JobManagerPlannedTest, AProposalIsAnsweredAndItsPlanHolds) {
  open_planned_job_of_b();
  PlanProposal proposed = proposal(3);
  proposed.set = set_of_planned();
  hear(b_, make_plan_proposal(proposed));
  const auto answers = control_plane_.sent_to<proto::PlanAnswer>(b_.id);
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
  PlanProposal proposed = proposal(3);
  proposed.set = set_of_planned();
  hear(b_, make_plan_proposal(proposed));
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
  EXPECT_TRUE(control_plane_.sent_to<proto::FailJob>(b_.id).empty());
}

// Nobody says whether the plan holds.
TEST_F(JobManagerPlannedTest, WhatIsKeptBackForTooLongFailsTheJob) {
  open_planned_job_of_b();
  PlanProposal proposed = proposal(3);
  proposed.set = set_of_planned();
  hear(b_, make_plan_proposal(proposed));
  trainers_[0]->submit(1, 0, 3, 0, [](proto::SubmitEntry& entry) { entry.timeout_ms = 1; });
  wait_for([&] { return !control_plane_.sent_to<proto::FailJob>(b_.id).empty(); });
  EXPECT_EQ(control_plane_.sent_to<proto::FailJob>(b_.id)[0]->reason()->str(),
            "job 'train': 't0' step 3 waited 1 ms for the coordinator to say whether plan 1 holds");
}

TEST_F(JobManagerPlannedTest, ACoordinatorThatProposesNonsenseFailsTheJob) {
  open_planned_job_of_b();
  PlanProposal proposed = proposal(3);
  proposed.set = set_of_planned();
  proposed.groups = groups_of({{0}}, JobHash(kKey));
  hear(b_, make_plan_proposal(proposed));
  wait_for([&] { return !control_plane_.sent_to<proto::FailJob>(b_.id).empty(); });
  EXPECT_EQ(control_plane_.sent_to<proto::FailJob>(b_.id)[0]->reason()->str(),
            "job 'train': the coordinator: a plan leaves out tensors that it is for");
}

}  // namespace
}  // namespace braid
