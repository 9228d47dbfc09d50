// SPDX-License-Identifier: Apache-2.0
// What the plans of a job tell its metrics.
#include "planning/plan_book_testing.h"

namespace braid {
namespace {

using testing::hash_of;
using testing::planned_tensors;

class PlanBookNumbersTest : public testing::PlanBookTest {
 protected:
  void make_counting(std::vector<uint32_t> ranks) {
    numbers_ = std::make_shared<JobNumbers>("train", ranks);
    make(std::move(ranks), noting_actions(), 0, numbers_);
  }
  void end(uint32_t tensor, uint64_t step, uint64_t after_ns) {
    ASSERT_TRUE(book_->on_done({kJob, hash_of(tensor), step}, now_ns_ += after_ns, 0).is_ok());
  }

  std::shared_ptr<JobNumbers> numbers_;
};

TEST_F(PlanBookNumbersTest, CountStepsAndTheirTimes) {
  make_counting({4, 6});
  EXPECT_EQ(numbers_->planned_bytes.get(), 0u);
  for (uint32_t rank = 0; rank < 2; ++rank) add(rank, kSet, planned_tensors(2));
  EXPECT_EQ(numbers_->planned_bytes.get(), 800u);
  EXPECT_EQ(numbers_->plan_groups.get(), 1u);
  for (uint64_t step = 0; step < 3; ++step) {
    submit_step(step, 2);
    now_ns_ += 1000;
    ASSERT_TRUE(submit(0, step, 1).is_ok());
    ASSERT_TRUE(submit(1, step, 1).is_ok());
    EXPECT_EQ(numbers_->steps.get(), step);
    end(0, step, 500);
    EXPECT_EQ(numbers_->steps.get(), step + 1);
  }
  EXPECT_EQ(numbers_->exposed_ns.get(), 3u * 500);
  EXPECT_EQ(numbers_->step_ns.get(), 3u * 1540 - 10) << "the first one has no step before it";
  EXPECT_EQ(numbers_->ranks[0].late_ns.get(), 0u);
  EXPECT_EQ(numbers_->ranks[1].late_ns.get(), 3u * 1020);
  EXPECT_EQ(numbers_->ranks[0].wait_ns.get(), 3u * 1520);
  EXPECT_EQ(numbers_->ranks[1].wait_ns.get(), 3u * 500);
}

TEST_F(PlanBookNumbersTest, AStepEndsWithItsLastGroup) {
  make_counting({0});
  add(0, kSet, planned_tensors(3));
  agree(1, 1, {{2}, {1, 0}});
  submit_step(1, 3);
  end(2, 1, 10);
  EXPECT_EQ(numbers_->steps.get(), 0u);
  EXPECT_EQ(numbers_->plan.get(), 0u) << "no step of the new plan has ended";
  end(1, 1, 10);
  EXPECT_EQ(numbers_->steps.get(), 1u);
  EXPECT_EQ(numbers_->plan.get(), 1u);
  EXPECT_EQ(numbers_->plan_groups.get(), 2u);
  EXPECT_EQ(numbers_->predicted_ns.get(), 2'000'000u);
}

TEST_F(PlanBookNumbersTest, SayWhetherTheStepWasMeasuredForTheTuner) {
  make_counting({0});
  add(0, kSet, planned_tensors(1));
  PlanProposal change;
  change.job_key = kJob;
  change.set = kSet;
  change.settings = TransferSettings{};
  for (const bool reports : {true, false}) {
    ++change.number;
    change.from_step = change.number;
    change.reports_steps = reports;
    ASSERT_TRUE(book_->on_proposal(change).is_ok());
    ASSERT_TRUE(decide(change.number, true).is_ok());
    submit_step(change.from_step, 1);
    end(0, change.from_step, 10);
    EXPECT_EQ(numbers_->is_tuning.get(), reports ? 1u : 0u);
  }
}

TEST_F(PlanBookNumbersTest, ThePlanIsThatOfTheLargestSet) {
  make_counting({0});
  add(0, kSet, planned_tensors(1, 1000));
  EXPECT_EQ(numbers_->planned_bytes.get(), 4000u);
  const auto small = testing::planned("small", 10);
  add(0, kSet + 1, {small});
  EXPECT_EQ(numbers_->planned_bytes.get(), 4000u);
  submit_step(0, 1);
  end(0, 0, 10);
  Submission other = submission(0, 0);
  other.tensor = small.hash;
  ASSERT_TRUE(pass(other, kSet + 1, now_ns_ += 10).is_ok());
  ASSERT_TRUE(book_->on_done({kJob, small.hash, 0}, now_ns_ += 10, 0).is_ok());
  EXPECT_EQ(numbers_->steps.get(), 2u) << "steps of both count";
  EXPECT_EQ(numbers_->planned_bytes.get(), 4000u);
}

}  // namespace
}  // namespace braid
