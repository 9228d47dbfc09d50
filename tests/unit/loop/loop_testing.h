// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "loop/loop.h"
#include "loop/timer.h"

namespace braid::testing {

// A loop that the test's own thread runs.
class LoopTest : public ::testing::Test {
 protected:
  // For waits that should never be that long.
  static constexpr uint64_t kTimeoutMs = 120'000;

  LoopTest() : loop_(std::move(Loop::create("test")).value()) {}

  // Runs the loop until somebody stops it; a test that hangs fails instead.
  void run() {
    Timer timeout(*loop_);
    bool timed_out = false;
    timeout.start_once(kTimeoutMs, [&] {
      timed_out = true;
      loop_->stop();
    });
    loop_->run();
    ASSERT_FALSE(timed_out) << "nobody stopped the loop";
  }

  // Runs the loop until `condition` holds; it is looked at in every round.
  void run_until(const std::function<bool()>& condition) {
    Timer ticker(*loop_);
    bool holds = condition();
    if (holds) return;
    ticker.start_repeating(1, [&] {
      holds = condition();
      if (holds) loop_->stop();
    });
    run();
    ASSERT_TRUE(holds);
  }

  // How many will wake the loop.
  size_t timers() {
    size_t timers = 0;
    uv_walk(
        loop_->uv(),
        [](uv_handle_t* handle, void* count) {
          if (handle->type == UV_TIMER && uv_is_active(handle) != 0) ++*static_cast<size_t*>(count);
        },
        &timers);
    return timers;
  }

  // What is due now, and what follows from it.
  void run_rounds(int rounds = 3) {
    for (int i = 0; i < rounds; ++i) uv_run(loop_->uv(), UV_RUN_NOWAIT);
  }

  std::unique_ptr<Loop> loop_;
};

}  // namespace braid::testing
