// SPDX-License-Identifier: Apache-2.0
#include "loop/work_thread.h"

#include <atomic>
#include <filesystem>
#include <future>
#include <iterator>
#include <vector>

#include "loop_testing.h"

namespace braid {
namespace {

class WorkThreadTest : public testing::LoopTest {
 protected:
  std::optional<WorkThread> worker_{std::in_place, *loop_, "work"};
};

TEST_F(WorkThreadTest, WorksElsewhereAndSaysSoOnTheLoop) {
  std::thread::id worked;
  std::thread::id told;
  ASSERT_TRUE(worker_->run([&] { worked = std::this_thread::get_id(); },
                           [&] { told = std::this_thread::get_id(); }));
  EXPECT_EQ(told, std::thread::id{});
  run_until([&] { return told != std::thread::id{}; });
  EXPECT_NE(worked, std::this_thread::get_id());
  EXPECT_EQ(told, std::this_thread::get_id());
}

TEST_F(WorkThreadTest, TheLoopGoesOnWhileATaskIsBlocked) {
  std::promise<void> release;
  bool is_done = false;
  ASSERT_TRUE(worker_->run([&] { release.get_future().wait(); }, [&] { is_done = true; }));
  int ticks = 0;
  Timer ticker(*loop_);
  ticker.start_repeating(1, [&] { ++ticks; });
  run_until([&] { return ticks > 3; });
  EXPECT_FALSE(is_done);
  release.set_value();
  run_until([&] { return is_done; });
}

TEST_F(WorkThreadTest, TasksRunInTheirOrder) {
  std::vector<int> order;
  std::vector<int> told;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        worker_->run([&order, i] { order.push_back(i); }, [&told, i] { told.push_back(i); }));
  }
  run_until([&] { return told.size() == 3; });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(told, order);
}

TEST_F(WorkThreadTest, TooManyTasksAreRefused) {
  std::promise<void> release;
  std::promise<void> begun;
  size_t done = 0;
  ASSERT_TRUE(worker_->run(
      [&] {
        begun.set_value();
        release.get_future().wait();
      },
      [&] { ++done; }));
  begun.get_future().wait();
  for (size_t i = 0; i < WorkThread::kTasksMax; ++i)
    ASSERT_TRUE(worker_->run([] {}, [&] { ++done; }));
  EXPECT_FALSE(worker_->run([] {}, [] {}));
  release.set_value();
  run_until([&] { return done == WorkThread::kTasksMax + 1; });
}

TEST_F(WorkThreadTest, ItsEndWaitsForTheTaskThatRunsAndDropsTheOthers) {
  std::promise<void> begun;
  std::atomic<bool> is_over = false;
  bool was_told = false;
  ASSERT_TRUE(worker_->run(
      [&] {
        begun.set_value();
        is_over = true;
      },
      [&] { was_told = true; }));
  begun.get_future().wait();
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = held;
  worker_->post([held = std::move(held)] {});
  worker_.reset();
  EXPECT_TRUE(is_over);
  EXPECT_TRUE(alive.expired());
  run_rounds();
  EXPECT_FALSE(was_told);
}

// Its end does not wait for the thread.
TEST_F(WorkThreadTest, TheThreadEndsToo) {
  const auto threads = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  const auto before = threads();
  for (int i = 0; i < 20; ++i) {
    WorkThread worker(*loop_, "work");
    worker.post([] {});
  }
  run_until([&] { return threads() <= before; });
}

// What a library keeps for a thread is gone before the process ends.
TEST_F(WorkThreadTest, TheEndOfALoopWaitsForTheThread) {
  static std::atomic<bool> has_ended = false;
  struct Mark {
    ~Mark() { has_ended = true; }
  };
  auto loop = std::move(Loop::create("another")).value();
  {
    WorkThread worker(*loop, "work");
    std::promise<void> ran;
    worker.post([&] {
      thread_local const Mark mark;
      ran.set_value();
    });
    ran.get_future().wait();
  }
  loop.reset();
  EXPECT_TRUE(has_ended);
}

// Memory that a dropped task was the last to hold posts its own unmapping.
TEST_F(WorkThreadTest, WhatItsEndPostsIsDroppedToo) {
  std::promise<void> begun;
  std::promise<void> release;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = held;
  const auto make_last = [&] {
    return std::shared_ptr<int>(new int, [this, held](int* number) {
      delete number;
      worker_->post([held] {});
    });
  };
  ASSERT_TRUE(worker_->run([] {}, [last = make_last()] {}));
  worker_->post([&] {
    begun.set_value();
    release.get_future().wait();
  });
  begun.get_future().wait();
  worker_->post([last = make_last()] {});
  held.reset();
  std::thread releaser([&] { release.set_value(); });
  worker_.reset();
  releaser.join();
  EXPECT_TRUE(alive.expired());
}

TEST_F(WorkThreadTest, WhatATaskHoldsGoesOnTheThread) {
  std::promise<std::thread::id> where;
  auto held = std::shared_ptr<int>(new int, [&](int* number) {
    delete number;
    where.set_value(std::this_thread::get_id());
  });
  worker_->post([held = std::move(held)] {});
  EXPECT_NE(where.get_future().get(), std::this_thread::get_id());
}

}  // namespace
}  // namespace braid
