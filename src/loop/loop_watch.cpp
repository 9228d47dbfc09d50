// SPDX-License-Identifier: Apache-2.0
#include "loop/loop_watch.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

namespace braid {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

uint64_t read_clock_ns(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

uint64_t since(uint64_t before, uint64_t now) { return now > before ? now - before : 0; }

class SystemTimes final : public LoopWatch::Times {
 public:
  void begin() override {
    schedstat_ = Fd(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
  }
  uint64_t now_ns() const override { return read_clock_ns(CLOCK_MONOTONIC); }
  uint64_t sleeps() const override {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return static_cast<uint64_t>(usage.ru_nvcsw);
  }
  // "computing waiting slices"; the first is as old as the last tick, so the clock is asked
  // instead.
  LoopWatch::ThreadTimes used() const override {
    LoopWatch::ThreadTimes times;
    times.sleeps = sleeps();
    times.computing_ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    std::array<char, 96> text{};
    if (!schedstat_.is_valid() || ::pread(schedstat_.get(), text.data(), text.size() - 1, 0) <= 0)
      return times;
    char* end = nullptr;
    (void)std::strtoull(text.data(), &end, 10);
    times.waiting_ns = std::strtoull(end, nullptr, 10);
    return times;
  }

 private:
  Fd schedstat_;  // of the loop's thread; none where the kernel does not count
};

}  // namespace

std::unique_ptr<LoopWatch::Times> LoopWatch::system_times() {
  return std::make_unique<SystemTimes>();
}

void LoopWatch::begin() {
  times_->begin();
  asked_ = times_->used();
  asked_at_ns_ = times_->now_ns();
  asked_sleeps_at_ns_ = asked_at_ns_;
  round_end_ns_ = asked_at_ns_;
  slept_polls_ = 0;
  polled_ms_ = asked_at_ns_ / kNsPerMs;
  is_on_ = true;
}

void LoopWatch::on_polled(uint64_t now_ms) {
  polled_ms_ = now_ms;
  // A poll that lasted has slept, once. One within a millisecond may have.
  if (now_ms * kNsPerMs > round_end_ns_ + kNsPerMs) ++slept_polls_;
}

uint64_t LoopWatch::own_time_ns(uint64_t round_ns, const ThreadTimes& used) {
  // The time used before the loop round began is not known, but it is little: some waiting for the
  // processor, also after the poll, and computing for kAskEveryNs at most.
  const uint64_t not_waiting = since(used.waiting_ns, round_ns);
  const uint64_t computing = since(kAskEveryNs, used.computing_ns);
  if (used.sleeps == 0) return std::min(round_ns, computing);
  return std::min(round_ns, std::max(not_waiting, computing));
}

void LoopWatch::on_round_end() {
  if (!is_on_) return;
  rounds_.add(1);
  const uint64_t now_ns = times_->now_ns();
  // The loop's clock has whole milliseconds.
  const uint64_t round_ns = since((polled_ms_ + 1) * kNsPerMs, now_ns);
  round_end_ns_ = now_ns;
  if (round_ns > kLongRoundNs) return on_long_round(now_ns, round_ns);
  if (now_ns - asked_sleeps_at_ns_ < kAskSleepsEveryNs) return;
  if (now_ns - asked_at_ns_ < kAskEveryNs) {
    asked_.sleeps = times_->sleeps();
  } else {
    asked_ = times_->used();
    asked_at_ns_ = now_ns;
  }
  asked_sleeps_at_ns_ = now_ns;
  slept_polls_ = 0;
}

void LoopWatch::on_long_round(uint64_t now_ns, uint64_t round_ns) {
  const ThreadTimes times = times_->used();
  const ThreadTimes used{since(asked_.computing_ns, times.computing_ns),
                         since(asked_.waiting_ns, times.waiting_ns),
                         since(asked_.sleeps + slept_polls_, times.sleeps)};
  asked_ = times;
  asked_at_ns_ = now_ns;
  asked_sleeps_at_ns_ = now_ns;
  slept_polls_ = 0;
  const uint64_t own_ns = own_time_ns(round_ns, used);
  if (own_ns <= kLongRoundNs) return;
  long_rounds_.store(long_rounds_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  longest_round_ns_.store(std::max(longest_round_ns_.load(std::memory_order_relaxed), own_ns),
                          std::memory_order_relaxed);
  ++untold_;
  if (warned_at_ns_ != 0 && now_ns - warned_at_ns_ < kWarnEveryNs) return;
  BRAID_LOG_WARN(
      "loop '{}' was held up for {} ms by its own callbacks, {} ms of it computing, and slept {} "
      "times; everybody else on it waited ({} such rounds since the last warning)",
      loop_name_, own_ns / kNsPerMs, std::min(own_ns, used.computing_ns) / kNsPerMs, used.sleeps,
      untold_);
  warned_at_ns_ = now_ns;
  untold_ = 0;
}

LoopCounters LoopWatch::counters() const {
  return {rounds_.get(), long_rounds_.load(std::memory_order_relaxed),
          longest_round_ns_.load(std::memory_order_relaxed)};
}

}  // namespace braid
