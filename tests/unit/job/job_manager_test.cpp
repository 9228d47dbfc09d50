// SPDX-License-Identifier: Apache-2.0
// Jobs from the trainers' OpenJob to their end, through the client socket and the rings.
#include <numeric>

#include "base/errors_testing.h"
#include "job/manager_world.h"

namespace braid {
namespace {

using testing::is_error;

class JobManagerTest : public testing::JobManagerTest {};

TEST_F(JobManagerTest, TrainersOfOneNodeReduceATensor) {
  constexpr uint64_t kCount = 1000;  // several units on both I/O loops
  open_job(2, kCount);
  EXPECT_EQ(trainers_[0]->epoch, 1u);
  EXPECT_EQ(trainers_[0]->nodes, 1u);
  EXPECT_EQ(trainers_[1]->block_of_rank, (std::vector<uint32_t>{0, 1}));
  for (auto& trainer : trainers_) std::iota(trainer->floats(), trainer->floats() + kCount, 0.0f);
  trainers_[0]->submit(1, 0, 0);
  trainers_[1]->submit(5, 0, 0);
  wait_for([&] { return trainers_[0]->done.size() == 1 && trainers_[1]->done.size() == 1; });
  for (auto& trainer : trainers_) {
    const proto::DoneEntry& done = trainer->done[0];
    ASSERT_EQ(done.result_bytes, kCount * 4);
    for (uint64_t i = 0; i < kCount; ++i)
      ASSERT_EQ(trainer->result(done)[i], 2.0f * static_cast<float>(i));
  }
  EXPECT_EQ(trainers_[0]->done[0].ticket, 1u);
  EXPECT_EQ(trainers_[1]->done[0].ticket, 5u);
  EXPECT_EQ(counters_.operations[static_cast<size_t>(Collective::AllReduce)], 1u);
  EXPECT_EQ(counters_.operation_bytes, kCount * 4);
}

TEST_F(JobManagerTest, ManyStepsRunInTheSameMemoryWhenResultsAreGivenBack) {
  constexpr uint64_t kCount = 40'000;  // 160 kB each in 1 MiB of results
  open_job(2, kCount);
  for (uint64_t step = 0; step < 30; ++step) {
    for (auto& trainer : trainers_) {
      trainer->floats()[0] = static_cast<float>(step);
      trainer->submit(step + 1, 0, step);
    }
    wait_for_all([&](const auto& trainer) { return trainer.done.size() == step + 1; });
    for (auto& trainer : trainers_) {
      ASSERT_EQ(trainer->result(trainer->done[step])[0], 2.0f * static_cast<float>(step));
      trainer->release(step + 1);
    }
  }
  ASSERT_EQ(statuses().size(), 1u);
  EXPECT_EQ(statuses()[0].steps_done, 30u);
  EXPECT_TRUE(trainers_[0]->failure.is_ok()) << trainers_[0]->failure.message();
}

TEST_F(JobManagerTest, ABarrierNeedsAllRanksAndNoInput) {
  open_job(2);
  const auto barrier = [](proto::SubmitEntry& entry) {
    entry.collective = static_cast<uint8_t>(Collective::Barrier);
    entry.offset = UINT64_MAX;
  };
  trainers_[0]->submit(1, 0, 0, 0, barrier);
  settle();
  for (auto& trainer : trainers_) trainer->poll();
  EXPECT_TRUE(trainers_[0]->done.empty());
  trainers_[1]->submit(1, 0, 0, 0, barrier);
  wait_for([&] { return trainers_[0]->done.size() == 1 && trainers_[1]->done.size() == 1; });
  EXPECT_EQ(trainers_[0]->done[0].result_bytes, 0u);
}

TEST_F(JobManagerTest, AJobEndsWhenAllItsTrainersLeave) {
  open_job(2);
  EXPECT_EQ(manager_->jobs().size(), 1u);
  trainers_[0]->leave();
  wait_for([&] { return trainers_[0]->has_left; });
  EXPECT_EQ(manager_->jobs().size(), 1u);
  trainers_[1]->leave();
  wait_for([&] { return trainers_[1]->has_left && manager_->jobs().size() == 0; });
  for (const auto& trainer : trainers_) EXPECT_TRUE(trainer->failure.is_ok());
  const uint64_t failures =
      std::accumulate(counters_.failures.begin(), counters_.failures.end(), uint64_t{0});
  EXPECT_EQ(failures, 0u);
}

TEST_F(JobManagerTest, WhatATrainerSubmittedBeforeItLeftCounts) {
  open_job(2);
  constexpr uint64_t kSteps = testing::TestTrainer::kRingCapacity;
  trainers_[0]->wakes_daemon = false;  // it may read LeaveJob first
  for (uint64_t step = 0; step < kSteps; ++step) trainers_[0]->submit(step + 1, 0, step);
  trainers_[0]->leave();
  wait_for([&] { return trainers_[0]->has_left; });
  for (uint64_t step = 0; step < kSteps; ++step) trainers_[1]->submit(step + 1, 0, step);
  wait_for([&] { return trainers_[1]->done.size() == kSteps; });
  EXPECT_TRUE(trainers_[1]->failure.is_ok()) << trainers_[1]->failure.message();
}

TEST_F(JobManagerTest, TheReasonOfWhoLeftIsToldToWhoWaitsForIt) {
  open_job(2, 4);
  trainers_[0]->leave("its process has ended\n");
  wait_for([&] { return trainers_[0]->has_left; });
  trainers_[1]->submit(1, 0, 0);
  EXPECT_TRUE(is_error(failure_of(*trainers_[1]), StatusCode::JobFailed, {"rank 0", "'w' step 0"}));
}

TEST_F(JobManagerTest, WhoCannotGoOnEndsTheJobThoughNobodyWaitsForIt) {
  open_job(2);
  trainers_[0]->leave("its GPU has\nfallen off the bus", true);
  const Status failure = failure_of(*trainers_[1]);
  EXPECT_TRUE(is_error(failure, StatusCode::JobFailed,
                       {"rank 0 cannot go on: its GPU has\\nfallen off the bus"}));
  EXPECT_EQ(failure_of(*trainers_[0]).message(), failure.message());
  wait_for([&] { return manager_->jobs().size() == 0; });
}

TEST_F(JobManagerTest, WhoCannotGoOnMayDieNext) {
  open_job(2);
  trainers_[0]->leave("", true);
  trainers_[0]->hang_up();
  const Status failure = failure_of(*trainers_[1]);
  EXPECT_TRUE(failure.message().ends_with("rank 0 cannot go on")) << failure.message();
}

// The second one comes when the job is no more.
TEST_F(JobManagerTest, LeavingTwiceDoesNoHarm) {
  open_job(1);
  trainers_[0]->leave();
  wait_for([&] { return trainers_[0]->has_left && manager_->jobs().size() == 0; });
  trainers_[0]->has_left = false;
  trainers_[0]->leave();
  wait_for([&] { return trainers_[0]->has_left; });
  trainers_[0]->hang_up();
  wait_for([&] { return server_->counters().connections_open == 0; });
}

TEST_F(JobManagerTest, TheNextJobOfTheSameNameHasTheNextEpoch) {
  open_job(1);
  trainers_[0]->leave();
  wait_for([&] { return manager_->jobs().size() == 0; });
  open_job(1);
  EXPECT_EQ(trainers_[1]->epoch, 2u);
}

TEST_F(JobManagerTest, StatusShowsTheJob) {
  open_job(2);
  trainers_[0]->submit(1, 0, 0);
  wait_for([&] { return manager_->jobs().operations_pending() == 1; });
  const auto told = statuses();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].name, "train");
  EXPECT_EQ(told[0].state, "running");
  EXPECT_EQ(told[0].world_size, 2u);
  EXPECT_EQ(told[0].operations_pending, 1u);
  ASSERT_EQ(told[0].local_ranks.size(), 2u);
  EXPECT_EQ(told[0].local_ranks[1].pid, ::getpid());
}

TEST_F(JobManagerTest, DrainsAtOnceWhenNobodyIsHere) {
  bool drained = false;
  manager_->drain([&] { drained = true; });
  wait_for([&] { return drained; });
}

TEST_F(JobManagerTest, DrainingWaitsForTrainersToLeaveAndTakesNoNewOnes) {
  open_job(1);
  bool drained = false;
  manager_->drain([&] { drained = true; });
  testing::TestTrainer& late = add_trainer();
  late.open("late", 0, 1, kThisNode);
  wait_for([&] { return late.was_closed; });
  EXPECT_EQ(late.failure.code(), StatusCode::Unavailable);
  EXPECT_FALSE(drained);
  trainers_[0]->submit(1, 0, 0);  // what is here goes on
  wait_for([&] { return trainers_[0]->done.size() == 1; });
  trainers_[0]->leave();
  wait_for([&] { return trainers_[0]->has_left; });
  trainers_[0]->hang_up();
  wait_for([&] { return drained; });
}

// The daemon's end while a trainer is still in a job: it is told.
TEST_F(JobManagerTest, WhatIsStillOpenAtTheEndIsTold) {
  open_job(1);
  telling_.reset();
  manager_.reset();
  trainers_[0]->poll();
  EXPECT_TRUE(is_error(trainers_[0]->failure, StatusCode::Cancelled,
                       {"job 'train': the daemon is shutting down"}));
  trainers_.clear();
}

}  // namespace
}  // namespace braid
