// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include <sched.h>

#include "base/clock.h"

namespace braid {

// Whether who waits looks again and again for a while before it sleeps. Waking a thread that sleeps
// takes 13 to 23 microseconds on a virtual machine; one that polls sees at once what has come.
enum class PollingMode : uint8_t { Off = 0, Adaptive = 1, Always = 2 };

constexpr PollingMode kPollingModes[] = {PollingMode::Off, PollingMode::Adaptive,
                                         PollingMode::Always};
const char* to_string(PollingMode mode);
std::optional<PollingMode> parse_polling_mode(std::string_view text);

// How many of a daemon's jobs poll now. Counted on the control loop; any thread asks.
class PollingJobs {
 public:
  void add() { jobs_.fetch_add(1, std::memory_order_relaxed); }
  void remove() { jobs_.fetch_sub(1, std::memory_order_relaxed); }
  bool has_any() const { return jobs_.load(std::memory_order_relaxed) > 0; }

 private:
  std::atomic<uint32_t> jobs_{0};
};

// How a time of polling ended.
enum class PollOutcome : uint8_t {
  Came,       // what was waited for
  NotCame,    // within the window
  Displaced,  // another thread wanted the processor for long: it computes
};

// For how long one waiter may poll, where it pays (OperationDuel). Adaptive: 100 microseconds at a
// time, which is more than a
// small all-reduce takes and costs what sleeping and waking cost a few times. Where that brings
// nothing twice running, or somebody else needs the processor, it is not tried again for a pause
// that doubles each time: so polling that never helps takes 0.2 % of a core at most (two windows in
// 64 ms), and polling beside somebody who computes 0.01 %. One thread at a time.
class PollingPolicy {
 public:
  static constexpr uint64_t kWindowNs = 100'000;
  static constexpr uint64_t kAlwaysWindowNs = 10'000'000;  // then it is due again
  static constexpr uint64_t kDisplacedNs = 100'000;        // a yield that took so long
  static constexpr uint64_t kPauseNsMin = 1'000'000;
  static constexpr uint64_t kPauseNsMax = 64'000'000;
  static constexpr uint64_t kDisplacedPauseNsMin = 8'000'000;
  static constexpr uint64_t kDisplacedPauseNsMax = 1'000'000'000;

  explicit PollingPolicy(PollingMode mode = PollingMode::Off) : mode_(mode) {}

  PollingMode mode() const { return mode_; }
  // 0: sleep at once.
  uint64_t window_ns(uint64_t now_ns) const;
  void on_end(PollOutcome outcome, uint64_t now_ns);

 private:
  void pause(uint64_t now_ns, uint64_t min_ns, uint64_t max_ns);

  PollingMode mode_;
  uint32_t misses_ = 0;    // running
  uint64_t pause_ns_ = 0;  // the last one
  uint64_t paused_until_ns_ = 0;
};

// Calls `has_come` until it says so, at most until `until_ns` (CLOCK_MONOTONIC), and yields the
// processor in between. `now_ns`: the time now; then the time at the end.
template <typename HasCome>
PollOutcome poll_until(uint64_t until_ns, uint64_t& now_ns, const HasCome& has_come) {
  const SystemClock clock;
  while (true) {
    if (has_come()) return PollOutcome::Came;
    if (now_ns >= until_ns) return PollOutcome::NotCame;
    ::sched_yield();
    const uint64_t before_ns = now_ns;
    now_ns = clock.now_ns();
    if (now_ns - before_ns >= PollingPolicy::kDisplacedNs)
      return has_come() ? PollOutcome::Came : PollOutcome::Displaced;
  }
}

}  // namespace braid
