// SPDX-License-Identifier: Apache-2.0
// Large registrations are read on another thread, and hold up nobody.
#include <algorithm>
#include <future>
#include <utility>

#include "base/errors_testing.h"
#include "job/manager_world.h"

namespace braid {
namespace {

using testing::names;

class JobManagerRegistrationTest : public testing::JobManagerTest {
 protected:
  using Tensors = std::vector<std::pair<std::string, uint64_t>>;

  ~JobManagerRegistrationTest() override { release(); }

  // Whatever goes to the other thread waits until release().
  void block() {
    planner_.post([wait = released_.get_future().share()] { wait.wait(); });
  }
  void release() {
    if (!std::exchange(is_released_, true)) released_.set_value();
  }
  // A message of far more than Registration::kSmallBytesMax, and of many pieces. With short names
  // it is not so large that it is checked on the other thread, before anything is done with it.
  static Tensors many(const std::string& prefix, size_t padding = 0) {
    Tensors tensors;
    for (size_t i = 0; i < 10 * Registration::kPieceTensors; ++i)
      tensors.emplace_back(prefix + std::to_string(i) + std::string(padding, '.'), 4);
    return tensors;
  }
  // `ranks` of a job that has registered nothing.
  std::vector<testing::TestTrainer*> open_bare(const std::string& job, uint32_t ranks) {
    std::vector<testing::TestTrainer*> opened;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      opened.push_back(&add_trainer());
      opened.back()->open(job, rank, ranks, kThisNode);
    }
    wait_for([&] {
      return std::ranges::all_of(opened, [](const auto* trainer) { return trainer->is_open; });
    });
    return opened;
  }
  void expect_sum(testing::TestTrainer& trainer, uint32_t tensor, uint64_t step) {
    const size_t before = trainer.done.size();
    std::fill_n(trainer.floats(), 4, 7.0F);
    trainer.submit(step + 1, tensor, step);
    wait_for([&] { return trainer.done.size() == before + 1; });
    EXPECT_EQ(trainer.result(trainer.done.back())[3], 7.0F);
    trainer.release(step + 1);
  }

  std::promise<void> released_;
  bool is_released_ = false;
};

TEST_F(JobManagerRegistrationTest, ALargeOneIsReadOnAnotherThread) {
  testing::TestTrainer& trainer = *open_bare("large", 1)[0];
  block();
  trainer.register_tensors(many("t", 100));
  settle();
  EXPECT_TRUE(trainer.registered.empty());
  release();
  wait_for([&] { return !trainer.registered.empty(); });
  EXPECT_EQ(trainer.registered, std::vector<uint32_t>{0});
  expect_sum(trainer, 10 * Registration::kPieceTensors - 1, 0);
}

TEST_F(JobManagerRegistrationTest, OperationsGoOnMeanwhile) {
  testing::TestTrainer& trainer = *open_bare("large", 1)[0];
  testing::TestTrainer& other = *open_bare("other", 1)[0];
  trainer.register_tensors({{"first", 4}});
  wait_for([&] { return !trainer.registered.empty(); });
  block();
  trainer.register_tensors(many("t"));
  settle();
  register_w(other);
  expect_sum(other, 0, 0);
  expect_sum(trainer, 0, 0);
  EXPECT_EQ(trainer.registered.size(), 1u);
  release();
  wait_for([&] { return trainer.registered.size() == 2; });
  EXPECT_EQ(trainer.registered[1], 1u);
}

TEST_F(JobManagerRegistrationTest, TheRanksOfAJobRegisterOneAfterTheOther) {
  const auto ranks = open_bare("large", 2);
  block();
  ranks[0]->register_tensors(many("t"), DataType::Float32, true);
  settle();
  // Small, but the first tensor is about to be one of another set.
  ranks[1]->register_tensors({many("t").front()}, DataType::Float32, true);
  settle();
  EXPECT_TRUE(ranks[1]->registered.empty() && ranks[1]->refusal.empty());
  release();
  wait_for([&] { return !ranks[0]->registered.empty() && !ranks[1]->refusal.empty(); });
  EXPECT_TRUE(names(ranks[1]->refusal, {"are not those of another rank"}));
  ranks[1]->register_tensors(many("t"), DataType::Float32, true);
  wait_for([&] { return !ranks[1]->registered.empty(); });
}

TEST_F(JobManagerRegistrationTest, WhatIsWrongAtItsEndRefusesAllOfIt) {
  testing::TestTrainer& trainer = *open_bare("large", 1)[0];
  trainer.register_tensors({{"first", 4}});
  wait_for([&] { return !trainer.registered.empty(); });
  Tensors tensors = many("t");
  tensors.emplace_back("first", 4);
  trainer.register_tensors(tensors);
  wait_for([&] { return !trainer.refusal.empty(); });
  EXPECT_EQ(trainer.refusal, "tensor 'first' is registered already");
  tensors.pop_back();
  trainer.register_tensors(tensors);
  wait_for([&] { return trainer.registered.size() == 2; });
  EXPECT_EQ(trainer.registered[1], 1u);
}

TEST_F(JobManagerRegistrationTest, ATrainerMayGoInTheMiddle) {
  const auto ranks = open_bare("large", 2);
  block();
  for (testing::TestTrainer* trainer : ranks) trainer->register_tensors(many("t"));
  settle();
  ranks[0]->hang_up();
  release();
  wait_for([&] { return !ranks[1]->failure.is_ok(); });
  EXPECT_NE(ranks[1]->failure.message().find("lost rank 0"), std::string::npos);
  ranks[1]->leave();
  wait_for([&] { return ranks[1]->has_left; });
  testing::TestTrainer& next = *open_bare("next", 1)[0];
  next.register_tensors(many("t"));
  wait_for([&] { return !next.registered.empty(); });
}

TEST_F(JobManagerRegistrationTest, AJobMayFailInTheMiddle) {
  const auto ranks = open_bare("large", 2);
  block();
  ranks[0]->register_tensors(many("t"));
  settle();
  ranks[1]->hang_up();
  wait_for([&] { return !ranks[0]->failure.is_ok(); });
  ranks[0]->leave();
  wait_for([&] { return ranks[0]->has_left; });
  EXPECT_TRUE(ranks[0]->registered.empty());
}

}  // namespace
}  // namespace braid
