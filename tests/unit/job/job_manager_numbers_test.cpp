// SPDX-License-Identifier: Apache-2.0
// What jobs tell metrics of themselves, from their begin to their end.

#include "job/manager_world.h"

namespace braid {
namespace {

class JobManagerNumbersTest : public testing::JobManagerTest {
 protected:
  JobTotals only() {
    const std::vector<JobTotals> totals = board_.totals();
    EXPECT_EQ(totals.size(), 1u);
    return totals.empty() ? JobTotals{} : totals.front();
  }
  // One step of both planned tensors, by all trainers, until its results are there and given back.
  void finish_step(uint64_t step) {
    for (auto& trainer : trainers_) {
      trainer->done.clear();
      trainer->submit(10 * step + 1, 1, step);
      trainer->submit(10 * step + 2, 2, step);
    }
    wait_for_all([](const auto& trainer) { return trainer.done.size() == 2; });
    for (auto& trainer : trainers_) {
      trainer->release(10 * step + 1);
      trainer->release(10 * step + 2);
    }
  }
};

TEST_F(JobManagerNumbersTest, AJobWithoutPlannedTensorsHasNoSteps) {
  open_job(2);
  EXPECT_EQ(only().name, "train");
  for (auto& trainer : trainers_) trainer->submit(1, 0, 0);
  wait_for([&] { return trainers_[0]->done.size() == 1 && trainers_[1]->done.size() == 1; });
  EXPECT_EQ(only().operations, 1u);
  EXPECT_EQ(only().operation_bytes, 16u);
  EXPECT_EQ(only().operations_pending, 0u);
  EXPECT_EQ(only().steps, 0u);
  EXPECT_FALSE(only().plan);
}

TEST_F(JobManagerNumbersTest, CountEachStepOfPlannedTensorsOnce) {
  open_job(2);
  for (auto& trainer : trainers_)
    trainer->register_tensors({{"t0", 10}, {"t1", 20}}, DataType::Float32, true);
  wait_for(
      [&] { return trainers_[0]->registered.size() == 2 && trainers_[1]->registered.size() == 2; });
  ASSERT_TRUE(only().plan);
  EXPECT_EQ(only().plan->groups, 1u);
  EXPECT_EQ(only().steps, 0u);
  for (uint64_t step = 0; step < 5; ++step) {
    finish_step(step);
    EXPECT_EQ(only().steps, step + 1);
  }
  const JobTotals totals = only();
  EXPECT_GE(totals.step_ns, totals.exposed_ns);
  ASSERT_EQ(totals.ranks.size(), 2u);
  for (const auto& [rank, times] : totals.ranks)
    EXPECT_GE(times.wait_ns, totals.exposed_ns) << "rank " << rank;
  wait_for([&] { return only().arena_memory_bytes > 0 && only().result_memory_bytes > 0; });
}

TEST_F(JobManagerNumbersTest, GoWhenTheJobFails) {
  open_job(2);
  ASSERT_EQ(board_.totals().size(), 1u);
  trainers_[0]->hang_up();
  wait_for([&] { return !trainers_[1]->failure.is_ok() && board_.totals().empty(); });
}

TEST_F(JobManagerNumbersTest, JobsOfOneNameAreOneSeries) {
  const std::string tokens[] = {"a", "b"};
  for (const std::string& token : tokens) {
    add_trainer().open("train", 0, 1, kThisNode, 60'000, 0, token);
    wait_for([&] { return trainers_.back()->is_open; });
    trainers_.back()->register_tensors({{"w", 4}});
    wait_for([&] { return !trainers_.back()->registered.empty(); });
    trainers_.back()->submit(1, 0, 0);
    wait_for([&] { return trainers_.back()->done.size() == 1; });
  }
  EXPECT_EQ(manager_->jobs().size(), 2u);
  EXPECT_EQ(only().operations, 2u);
  trainers_[0]->leave();
  wait_for([&] { return manager_->jobs().size() == 1; });
  EXPECT_EQ(only().operations, 2u) << "what the first one has done still counts";
  trainers_[1]->leave();
  wait_for([&] { return board_.totals().empty(); });
}

}  // namespace
}  // namespace braid
