// SPDX-License-Identifier: Apache-2.0
#include "loop/loop_polling.h"

#include <algorithm>
#include <utility>

#include <sys/epoll.h>

namespace braid {
namespace {

constexpr uint64_t kMillisecondNs = 1'000'000;

void increase(std::atomic<uint64_t>& counter, uint64_t amount) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

}  // namespace

bool LoopPolling::may_poll(uv_loop_t* loop) {
  switch (policy_.mode()) {
    case PollingMode::Off:
      return false;
    case PollingMode::Adaptive:
      if (jobs_ != nullptr && !jobs_->has_any()) return false;
      // What is still to be done goes first, and the work counts until then.
      return uv_backend_timeout(loop) != 0 && std::exchange(had_work_, false);
    case PollingMode::Always:
      return uv_backend_timeout(loop) != 0 && !pollables_.empty();
  }
  return false;
}

// The kernel's events are looked at, not taken: libuv finds them in its own call.
PollOutcome LoopPolling::poll(int backend_fd, std::span<Pollable* const> pollables,
                              uint64_t until_ns, uint64_t& now_ns) const {
  const auto has_come = [&] {
    const bool has_any = std::any_of(pollables.begin(), pollables.end(),
                                     [](const Pollable* one) { return one->has_something(); });
    epoll_event event{};
    return has_any || ::epoll_wait(backend_fd, &event, 1, 0) > 0;
  };
  PollOutcome outcome = poll_until(until_ns, now_ns, has_come);
  while (policy_.mode() == PollingMode::Always && outcome == PollOutcome::Displaced)
    outcome = poll_until(until_ns, now_ns, has_come);
  return outcome;
}

void LoopPolling::before_sleep(uv_loop_t* loop) {
  if (!may_poll(loop)) return;
  const uint64_t begin_ns = SystemClock().now_ns();
  if (policy_.window_ns(begin_ns) == 0) return;
  const int timeout_ms = uv_backend_timeout(loop);  // of the next timer; less than 0: none
  uint64_t until_ns =
      timeout_ms < 0 ? UINT64_MAX : begin_ns + uint64_t(timeout_ms) * kMillisecondNs;
  if (policy_.mode() == PollingMode::Adaptive)
    until_ns = std::min(until_ns, begin_ns + policy_.window_ns(begin_ns));
  std::span<Pollable* const> pollables;
  if (pollables_.size() <= kPollablesMax) pollables = pollables_;
  for (Pollable* pollable : pollables) pollable->begin_polling();
  uint64_t now_ns = begin_ns;
  const PollOutcome outcome = poll(uv_backend_fd(loop), pollables, until_ns, now_ns);
  for (Pollable* pollable : pollables) pollable->end_polling();
  policy_.on_end(outcome, now_ns);
  count(outcome, now_ns - begin_ns);
  uv_update_time(loop);  // a timer may be due now
}

void LoopPolling::count(PollOutcome outcome, uint64_t polled_ns) {
  increase(polled_ns_, polled_ns);
  increase(outcomes_[static_cast<size_t>(outcome)], 1);
}

PollingCounters LoopPolling::counters() const {
  const auto times = [this](PollOutcome outcome) {
    return outcomes_[static_cast<size_t>(outcome)].load(std::memory_order_relaxed);
  };
  return {polled_ns_.load(std::memory_order_relaxed), times(PollOutcome::Came),
          times(PollOutcome::NotCame), times(PollOutcome::Displaced)};
}

}  // namespace braid
