// SPDX-License-Identifier: Apache-2.0
#include "loop/paced_tasks.h"

#include <optional>
#include <vector>

#include "loop_testing.h"

namespace braid {
namespace {

class PacedTasksTest : public testing::LoopTest {
 protected:
  void add(int number) {
    tasks_->add(this, [this, number] { ran_.push_back(number); });
  }

  std::optional<PacedTasks> tasks_{*loop_};
  std::vector<int> ran_;
};

TEST_F(PacedTasksTest, RunsOneInEachRoundInOrder) {
  for (const int number : {1, 2, 3}) add(number);
  for (size_t round = 1; round <= 3; ++round) {
    run_rounds(1);
    EXPECT_EQ(ran_.size(), round);
  }
  EXPECT_EQ(ran_, (std::vector{1, 2, 3}));
}

TEST_F(PacedTasksTest, TheLoopSleepsWhenNothingIsLeft) {
  add(1);
  run_rounds(3);
  EXPECT_EQ(ran_.size(), 1u);
  EXPECT_NE(uv_backend_timeout(loop_->uv()), 0);
  add(2);
  run_rounds(1);
  EXPECT_EQ(ran_.size(), 2u);
}

TEST_F(PacedTasksTest, DropsThoseOfOneOwnerAlsoFromWithinATask) {
  const int owners[2]{};
  tasks_->add(&owners[0], [&] {
    ran_.push_back(1);
    tasks_->drop(&owners[0]);
  });
  tasks_->add(&owners[0], [&] { ran_.push_back(2); });
  tasks_->add(&owners[1], [&] { ran_.push_back(3); });
  run_rounds(5);
  EXPECT_EQ(ran_, (std::vector{1, 3}));
}

TEST_F(PacedTasksTest, ATaskMayAddOthers) {
  tasks_->add(this, [&] { add(1); });
  run_rounds(1);
  EXPECT_TRUE(ran_.empty());
  run_rounds(1);
  EXPECT_EQ(ran_, std::vector{1});
}

TEST_F(PacedTasksTest, WhatIsLeftIsDroppedAtItsEnd) {
  add(1);
  tasks_.reset();
  run_rounds(3);
  EXPECT_TRUE(ran_.empty());
}

}  // namespace
}  // namespace braid
