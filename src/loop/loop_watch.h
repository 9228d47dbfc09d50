// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/shared_number.h"

namespace braid {

// What a loop knows of its own rounds: all the callbacks from one poll's return to the next poll.
struct LoopCounters {
  uint64_t rounds = 0;
  uint64_t long_rounds = 0;       // took more than LoopWatch::kLongRoundNs
  uint64_t longest_round_ns = 0;  // of those
};

// Measures the rounds of a loop and warns of long ones: everything else on the loop waited for
// them. What counts is the loop's own time, computing or blocked in a system call. What others took
// of the processor meanwhile is no fault of the loop: neither other threads nor, on a virtual
// machine, other guests, whose share the kernel takes off the thread's computing. A thread that
// never went to sleep was not blocked. A round costs one reading of the clock; how often the thread
// slept is asked every 50 microseconds at most, what it has used once in a millisecond, both also
// when a round was long. Loop thread only, but for counters().
class LoopWatch {
 public:
  static constexpr uint64_t kLongRoundNs = 5'000'000;
  static constexpr uint64_t kWarnEveryNs = 10'000'000'000;

  // What a thread has used since it began.
  struct ThreadTimes {
    uint64_t computing_ns = 0;
    uint64_t waiting_ns = 0;  // ready to run, while others had the processor
    uint64_t sleeps = 0;      // how often it gave up the processor, in polls and in calls
  };

  // Where it reads the time and what its thread has used; tests have their own.
  class Times {
   public:
    Times() = default;
    Times(const Times&) = delete;
    Times& operator=(const Times&) = delete;
    virtual ~Times() = default;
    virtual void begin() {}  // on the thread that is asked about
    virtual uint64_t now_ns() const = 0;
    virtual uint64_t sleeps() const = 0;  // as in ThreadTimes, which costs more to ask for
    virtual ThreadTimes used() const = 0;
  };
  static std::unique_ptr<Times> system_times();

  explicit LoopWatch(std::string loop_name, std::unique_ptr<Times> times = system_times())
      : loop_name_(std::move(loop_name)), times_(std::move(times)) {}

  // On the thread that runs the loop from now on.
  void begin();
  void end() { is_on_ = false; }
  // `now_ms`: the loop's clock, which stands where the poll returned.
  void on_polled(uint64_t now_ms);
  void on_round_end();

  LoopCounters counters() const;  // any thread

  // The least that a round of `round_ns` has had for itself, when the thread has used `used` since
  // it was asked the last time, which is up to kAskEveryNs of its rounds before this one.
  // `used.sleeps`: without those that were in a poll for certain.
  static uint64_t own_time_ns(uint64_t round_ns, const ThreadTimes& used);

 private:
  static constexpr uint64_t kAskEveryNs = 1'000'000;
  static constexpr uint64_t kAskSleepsEveryNs = 50'000;

  void on_long_round(uint64_t now_ns, uint64_t round_ns);

  const std::string loop_name_;
  const std::unique_ptr<Times> times_;
  bool is_on_ = false;
  uint64_t polled_ms_ = 0;
  ThreadTimes asked_;
  uint64_t asked_at_ns_ = 0;
  uint64_t asked_sleeps_at_ns_ = 0;
  uint64_t round_end_ns_ = 0;  // of the last round
  uint64_t slept_polls_ = 0;   // since asked_sleeps_at_ns_, as far as the clock shows it
  uint64_t warned_at_ns_ = 0;
  uint64_t untold_ = 0;  // long rounds since the last warning
  SharedNumber rounds_;
  std::atomic<uint64_t> long_rounds_{0};
  std::atomic<uint64_t> longest_round_ns_{0};
};

}  // namespace braid
