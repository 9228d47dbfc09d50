// SPDX-License-Identifier: Apache-2.0
#include "loop/user_work.h"

#include <future>
#include <optional>
#include <string>
#include <thread>

#include "loop_testing.h"

namespace braid {
namespace {

class UserWorkTest : public testing::LoopTest {
 protected:
  void TearDown() override { release(); }
  // The thread does nothing more until release().
  void block() {
    thread_->post([wait = released_.get_future().share()] { wait.wait(); });
  }
  void release() {
    if (!std::exchange(is_released_, true)) released_.set_value();
  }
  void run(uid_t user, char name, const void* owner = nullptr) {
    work_->run(
        user, owner == nullptr ? this : owner, [] {}, [this, name] { done_ += name; });
  }

  std::optional<WorkThread> thread_{std::in_place, *loop_, "work"};
  std::optional<UserWork> work_{std::in_place, *loop_, *thread_};
  std::promise<void> released_;
  bool is_released_ = false;
  std::string done_;
};

TEST_F(UserWorkTest, UsersTakeTurns) {
  block();
  for (const char name : {'a', 'b', 'c'}) run(1, name);
  run(2, 'x');
  release();
  run_until([&] { return done_.size() == 4; });
  EXPECT_EQ(done_, "abxc");
}

TEST_F(UserWorkTest, OthersWaitForOneTaskAtMost) {
  block();
  int begun = 0, begun_before_others = 0;
  for (int i = 0; i < 3; ++i)
    work_->run(
        1, this, [&] { ++begun; }, [this] { done_ += 'a'; });
  thread_->post([&] { begun_before_others = begun; });
  release();
  run_until([&] { return done_.size() == 3; });
  EXPECT_EQ(begun_before_others, 1);
}

TEST_F(UserWorkTest, WhatIsDroppedIsNotDone) {
  block();
  const int other = 0;
  run(1, 'a');  // on the thread
  run(1, 'b');
  run(1, 'c', &other);
  run(2, 'd');
  work_->drop(1, this);
  release();
  run_until([&] { return done_.size() == 2; });
  EXPECT_EQ(done_.find('a'), std::string::npos);
  EXPECT_EQ(done_.find('b'), std::string::npos);
}

TEST_F(UserWorkTest, WaitsForAThreadThatHasTooMuchToDo) {
  block();
  for (size_t i = 0; i < WorkThread::kTasksMax; ++i) thread_->post([] {});
  run(1, 'a');
  run_rounds();
  EXPECT_EQ(done_, "");
  release();
  run_until([&] { return done_ == "a"; });
}

TEST_F(UserWorkTest, NothingIsDoneAfterItsEnd) {
  block();
  run(1, 'a');
  work_.reset();
  release();
  bool is_through = false;
  ASSERT_TRUE(thread_->run([] {}, [&] { is_through = true; }));
  run_until([&] { return is_through; });
  EXPECT_EQ(done_, "");
}

TEST_F(UserWorkTest, ThingsEndOnTheThread) {
  struct Thing {
    std::promise<std::thread::id>& ended;
    ~Thing() { ended.set_value(std::this_thread::get_id()); }
  };
  std::promise<std::thread::id> ended;
  work_->dispose(std::make_shared<Thing>(ended));
  EXPECT_NE(ended.get_future().get(), std::this_thread::get_id());
}

}  // namespace
}  // namespace braid
