// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "loop/loop.h"

namespace braid {

// Calls back after a time, once or again and again. Destroying it cancels it, also from within its
// own callback.
class Timer {
 public:
  explicit Timer(Loop& loop) : loop_(loop) {
    uv_timer_init(loop.uv(), handle_.get());
    handle_.set_initialised();
    handle_.get()->data = this;
  }

  void start_once(uint64_t delay_ms, std::function<void()> callback) {
    start(delay_ms, 0, std::move(callback));
  }
  void start_repeating(uint64_t period_ms, std::function<void()> callback) {
    start(period_ms, period_ms, std::move(callback));
  }
  void stop() { uv_timer_stop(handle_.get()); }
  bool is_active() const {
    return uv_is_active(reinterpret_cast<const uv_handle_t*>(handle_.get())) != 0;
  }

 private:
  void start(uint64_t delay_ms, uint64_t period_ms, std::function<void()> callback) {
    BRAID_ASSERT_IN_LOOP(loop_);
    callback_ = std::make_shared<std::function<void()>>(std::move(callback));
    // The loop's clock stands still while callbacks run, and must: it says when they began.
    const uint64_t now_ms = uv_hrtime() / 1'000'000;
    const uint64_t loop_now_ms = uv_now(loop_.uv());
    const uint64_t behind_ms = now_ms > loop_now_ms ? now_ms - loop_now_ms : 0;
    uv_timer_start(
        handle_.get(),
        [](uv_timer_t* timer) {
          const auto keep = static_cast<Timer*>(timer->data)->callback_;
          (*keep)();
        },
        behind_ms + delay_ms, period_ms);
  }

  Loop& loop_;
  Handle<uv_timer_t> handle_;
  std::shared_ptr<std::function<void()>> callback_;
};

}  // namespace braid
