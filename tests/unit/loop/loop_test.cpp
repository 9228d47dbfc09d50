// SPDX-License-Identifier: Apache-2.0
#include "loop/loop.h"

#include <atomic>

#include <fcntl.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "loop_testing.h"

namespace braid {
namespace {

class LoopTest : public testing::LoopTest {};

TEST_F(LoopTest, ADeferredTaskMayDeferAnother) {
  std::vector<int> order;
  loop_->defer([&] {
    loop_->defer([&] {
      order.push_back(3);
      loop_->defer([&] { loop_->stop(); });
    });
    order.push_back(1);
  });
  loop_->defer([&] { order.push_back(2); });
  run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

// Nothing else would wake it: the loop must not go to sleep on what was deferred.
TEST_F(LoopTest, DoesNotSleepOnWhatWasDeferredInThePollPhase) {
  uv_async_t* async = nullptr;
  Handle<uv_async_t> handle;
  async = handle.get();
  async->data = loop_.get();
  ASSERT_EQ(uv_async_init(loop_->uv(), async,
                          [](uv_async_t* uv) {
                            auto* loop = static_cast<Loop*>(uv->data);
                            loop->defer([loop] { loop->stop(); });
                          }),
            0);
  handle.set_initialised();
  uv_async_send(async);
  run();
}

TEST_F(LoopTest, WhatWasDeferredLastRunsWhenTheLoopGoes) {
  bool has_run = false;
  loop_->defer([&] { has_run = true; });
  loop_.reset();
  EXPECT_TRUE(has_run);
}

TEST_F(LoopTest, StopsFromAnotherThread) {
  std::thread stopper([this] { loop_->stop(); });
  run();
  stopper.join();
}

TEST_F(LoopTest, RunsAgainAfterItWasStopped) {
  int runs = 0;
  for (int i = 0; i < 3; ++i) {
    loop_->defer([&] {
      ++runs;
      loop_->stop();
    });
    run();
  }
  EXPECT_EQ(runs, 3);
}

TEST_F(LoopTest, KnowsItsThread) {
  EXPECT_TRUE(loop_->is_in_loop());
  std::atomic<bool> elsewhere{true};
  bool here = false;
  loop_->defer([&] {
    here = loop_->is_in_loop();
    std::thread([&] { elsewhere = loop_->is_in_loop(); }).join();
    loop_->stop();
  });
  run();
  EXPECT_TRUE(here);
  EXPECT_FALSE(elsewhere);
  EXPECT_TRUE(loop_->is_in_loop());
}

using LoopDeathTest = LoopTest;

TEST_F(LoopDeathTest, DeferringFromAnotherThreadIsABug) {
  EXPECT_DEATH(
      {
        loop_->defer([&] { std::thread([&] { loop_->defer([] {}); }).join(); });
        loop_->run();
      },
      "called outside the loop's thread");
}

// A daemon that starts without enough descriptors must say so.
TEST(LoopCreateTest, WithoutDescriptorsThereIsAnErrorAndNoLoop) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next_free = Fd(::open("/dev/null", O_RDONLY)).get();
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next_free);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto loop = Loop::create("starved");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(loop.is_ok());
  EXPECT_EQ(loop.status().code(), StatusCode::ResourceExhausted);
}

}  // namespace
}  // namespace braid
