// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <uv.h>

#include "base/status.h"
#include "loop/handle.h"
#include "loop/loop_polling.h"
#include "loop/loop_watch.h"

namespace braid {

// A libuv loop that is run by one thread. Everything made on it is used and destroyed on that
// thread (before the first run(), by the thread that will run it or that starts it). stop() alone
// may be called from any thread.
class Loop {
 public:
  static Result<std::unique_ptr<Loop>> create(std::string name);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();  // every handle must have been closed; runs their close callbacks

  // Runs until stop(). The calling thread becomes the loop's thread.
  void run();
  // Thread-safe.
  void stop();

  // Runs `task` after the callback that is being run now, before the loop sleeps. Loop thread only.
  // This is how an object gets rid of itself or of its callers safely.
  void defer(std::function<void()> task);

  // How often it has looked for events. Loop thread only.
  uint64_t rounds() const { return rounds_; }

  // True on the loop's thread, and on any thread while the loop isn't running.
  bool is_in_loop() const;
  uv_loop_t* uv() { return &loop_; }
  LoopPolling& polling() { return polling_; }
  const std::string& name() const { return name_; }
  LoopCounters counters() const { return watch_.counters(); }               // any thread
  PollingCounters polling_counters() const { return polling_.counters(); }  // any thread

 private:
  explicit Loop(std::string name) : name_(std::move(name)), watch_(name_) {}
  void run_deferred();

  std::string name_;
  uv_loop_t loop_{};
  bool is_initialised_ = false;  // false: there were no descriptors for it
  std::thread::id thread_{};
  Handle<uv_async_t> stop_async_;
  Handle<uv_check_t> polled_check_;
  Handle<uv_prepare_t> deferred_prepare_;
  Handle<uv_idle_t>
      deferred_idle_;  // active only while something is deferred: keeps the loop from sleeping
  std::vector<std::function<void()>> deferred_;
  uint64_t rounds_ = 0;
  LoopWatch watch_;
  LoopPolling polling_;
};

}  // namespace braid

#define BRAID_ASSERT_IN_LOOP(loop) \
  BRAID_ASSERT((loop).is_in_loop(), "called outside the loop's thread")
