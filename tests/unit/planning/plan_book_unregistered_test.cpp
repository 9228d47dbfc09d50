// SPDX-License-Identifier: Apache-2.0
// Sets that no trainer of the node has any more.
#include "planning/plan_book_testing.h"

namespace braid {
namespace {

using testing::hash_of;
using testing::planned;
using testing::planned_tensors;

class PlanBookUnregisteredTest : public testing::PlanBookTest {
 protected:
  static constexpr uint64_t kOther = 6;

  void make_with_ranks(uint32_t ranks) {
    std::vector<uint32_t> local_ranks;
    for (uint32_t rank = 0; rank < ranks; ++rank) local_ranks.push_back(rank);
    make(std::move(local_ranks));
    for (uint32_t rank = 0; rank < ranks; ++rank) add(rank, kSet, planned_tensors(2));
  }
  bool is_known(uint64_t set) const {
    return book_->to_json({}).find(set == kSet ? "t0" : "other") != std::string::npos;
  }
};

TEST_F(PlanBookUnregisteredTest, StayUntilAllRanksOfTheNodeAreThrough) {
  make_with_ranks(2);
  EXPECT_EQ(book_->remove(1, kSet), nullptr);
  EXPECT_TRUE(submit(0, 0, 0).is_ok());
  EXPECT_TRUE(sent_as<proto::SetUnregistered>().empty());
  EXPECT_NE(book_->remove(0, kSet), nullptr);
  EXPECT_FALSE(is_known(kSet));
  ASSERT_EQ(sent_as<proto::SetUnregistered>().size(), 1u);
  EXPECT_EQ(sent_as<proto::SetUnregistered>()[0]->set(), kSet);
  EXPECT_EQ(sent_as<proto::SetUnregistered>()[0]->job_key(), kJob);
}

TEST_F(PlanBookUnregisteredTest, WaitForARankThatHasYetToRegisterThem) {
  make({0, 1});
  add(0, kSet, planned_tensors(2));
  EXPECT_EQ(book_->remove(0, kSet), nullptr);
  add(1, kSet, planned_tensors(2));
  EXPECT_NE(book_->remove(1, kSet), nullptr);
  EXPECT_EQ(sent_as<proto::SetRegistered>().size(), 1u);
}

TEST_F(PlanBookUnregisteredTest, LeaveTheirTensorsToOthers) {
  make_with_ranks(1);
  EXPECT_NE(book_->remove(0, kSet), nullptr);
  for (uint32_t i = 0; i < 2; ++i) book_->remove_from_index(hash_of(i));
  add(0, kOther, {planned("t1", 100), planned("other", 100)});
  EXPECT_TRUE(is_known(kOther));
}

TEST_F(PlanBookUnregisteredTest, AreIgnoredWhereACoordinatorOrAnOperationNamesThem) {
  make_with_ranks(1);
  ASSERT_TRUE(propose(1, 3, {{0}, {1}}).is_ok());
  EXPECT_NE(book_->remove(0, kSet), nullptr);
  sent.clear();
  EXPECT_TRUE(decide(1, true).is_ok());
  EXPECT_TRUE(propose(2, 6, {{1}, {0}}).is_ok());
  EXPECT_EQ(accepted(), std::vector<bool>{false});
  // Its tensors are not out of the index yet.
  EXPECT_TRUE(book_->on_done({kJob, hash_of(0), 0}, 10, 0).is_ok());
  EXPECT_TRUE(book_->on_loss({kJob, hash_of(0), 0}, {}).is_ok());
}

TEST_F(PlanBookUnregisteredTest, AreNotTheLargestAnyMore) {
  const auto numbers = std::make_shared<JobNumbers>("train", std::vector<uint32_t>{0});
  make({0}, noting_actions(), 0, numbers);
  add(0, kSet, planned_tensors(2));
  add(0, kOther, {planned("other", 30)});
  EXPECT_EQ(numbers->planned_bytes.get(), 800u);
  const StepTimes* largest = book_->step_times();
  EXPECT_NE(book_->remove(0, kSet), nullptr);
  EXPECT_EQ(numbers->planned_bytes.get(), 120u);
  EXPECT_NE(book_->step_times(), nullptr);
  EXPECT_NE(book_->step_times(), largest);
  EXPECT_NE(book_->remove(0, kOther), nullptr);
  EXPECT_EQ(numbers->planned_bytes.get(), 0u);
  EXPECT_EQ(numbers->plan_groups.get(), 0u);
  EXPECT_EQ(book_->step_times(), nullptr);
}

// The limit is on those that there are.
TEST_F(PlanBookUnregisteredTest, MakeRoomForOthers) {
  make();
  for (uint64_t set = 1; set <= 2 * PlanBook::kSetsMax; ++set) {
    const std::string name = "s" + std::to_string(set);
    add(0, set, {planned(name, 100)});
    EXPECT_NE(book_->remove(0, set), nullptr);
    book_->remove_from_index(testing::test_job().of_name(name));
  }
}

}  // namespace
}  // namespace braid
