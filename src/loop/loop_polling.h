// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include <uv.h>

#include "base/polling.h"

namespace braid {

// Something that a loop handles and can look at without a system call: a ring in shared memory.
class Pollable {
 public:
  virtual ~Pollable() = default;
  // From now on has_something() is asked, and a thread that puts something in need not wake the
  // loop.
  virtual void begin_polling() = 0;
  virtual bool has_something() const = 0;
  // The loop may sleep from now on. What has come meanwhile is handled in its next round.
  virtual void end_polling() = 0;
};

struct PollingCounters {
  uint64_t polled_ns = 0;
  uint64_t came = 0;  // times of polling that ended so
  uint64_t not_came = 0;
  uint64_t displaced = 0;
};

// Keeps a loop awake for a short time after a round in which it had work: the next thing often
// comes within microseconds. PollingMode::Always: as long as there are pollables. Loop thread only,
// but for counters().
class LoopPolling {
 public:
  // More pollables are not looked at: they wake the loop as if it slept.
  static constexpr size_t kPollablesMax = 32;

  // `jobs`, which outlive it: it is Adaptive only while one of them polls. None: always.
  void set_mode(PollingMode mode, const PollingJobs* jobs = nullptr) {
    policy_ = PollingPolicy(mode);
    jobs_ = jobs;
  }
  PollingMode mode() const { return policy_.mode(); }
  void add(Pollable& pollable) { pollables_.push_back(&pollable); }
  void remove(Pollable& pollable) { std::erase(pollables_, &pollable); }
  // A submission, a chunk or a message between loops was handled in this round.
  void note_work() { had_work_ = true; }

  // The last thing that a round does.
  void before_sleep(uv_loop_t* loop);

  PollingCounters counters() const;  // any thread

 private:
  bool may_poll(uv_loop_t* loop);
  PollOutcome poll(int backend_fd, std::span<Pollable* const> pollables, uint64_t until_ns,
                   uint64_t& now_ns) const;
  void count(PollOutcome outcome, uint64_t polled_ns);

  PollingPolicy policy_;
  const PollingJobs* jobs_ = nullptr;
  std::vector<Pollable*> pollables_;
  bool had_work_ = false;
  std::atomic<uint64_t> polled_ns_{0};
  std::array<std::atomic<uint64_t>, 3> outcomes_{};  // by PollOutcome
};

}  // namespace braid
