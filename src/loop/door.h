// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "loop/loop.h"

namespace braid {

// The way into a loop from other threads: a bounded queue, emptied on the loop by one callback per
// message, in order. What is not handled within kHandleNsMax comes in the loop's next rounds: the
// others on the loop have their turn in between. send() may be called from any thread while the
// door lives; the door is made and destroyed on its loop, and what is still in it then is dropped.
template <typename Message>
class Door {
 public:
  static constexpr uint64_t kHandleNsMax = 1'000'000;  // no message is begun later in a round

  Door(Loop& loop, size_t capacity, std::function<void(Message&)> handler)
      : loop_(loop), capacity_(capacity), handler_(std::move(handler)) {
    BRAID_ASSERT(wake_->is_valid() && uv_poll_init(loop.uv(), poll_.get(), wake_->get()) == 0,
                 "an eventfd fails only without descriptors at start-up");
    poll_.set_initialised();
    poll_.get()->data = this;
    uv_poll_start(poll_.get(), UV_READABLE,
                  [](uv_poll_t* poll, int, int) { static_cast<Door*>(poll->data)->on_wake(); });
    uv_idle_init(loop.uv(), idle_.get());
    idle_.set_initialised();
    idle_.get()->data = this;
    queue_.reserve(capacity < 256 ? capacity : 256);
  }

  // False when the queue is full: the message was not taken.
  bool send(Message message) BRAID_EXCLUDES(mutex_) { return push(std::move(message), capacity_); }

  // Never refused: for messages whose number is bounded by other means (so many per job, operation,
  // link or flow).
  void send_unbounded(Message message) BRAID_EXCLUDES(mutex_) {
    push(std::move(message), SIZE_MAX);
  }

  // Handles what has come so far, at once; not from within a handler. Loop thread only; the loop
  // calls the handler by itself.
  void drain() BRAID_EXCLUDES(mutex_) {
    handle_taken(UINT64_MAX);
    take_queue();
    handle_taken(UINT64_MAX);
  }

 private:
  bool push(Message message, size_t limit) BRAID_EXCLUDES(mutex_) {
    std::shared_ptr<const Fd> wake;
    {
      MutexLock lock(mutex_);
      if (queue_.size() >= limit) return false;
      if (queue_.empty()) wake = wake_;
      queue_.push_back(std::move(message));
    }
    // Outside the lock, for who is woken takes it at once. This message may be the one that ends
    // the door, and drain() needs no wake-up to come by: the descriptor outlives them.
    if (wake != nullptr) {
      const uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(wake->get(), &one, sizeof(one));
    }
    return true;
  }

  void on_wake() {
    uint64_t times = 0;
    [[maybe_unused]] const auto taken = ::read(wake_->get(), &times, sizeof(times));
    loop_.polling().note_work();
    if (!taken_.empty()) return;  // the idle handle is about to
    had_turn_ = true;
    handle_some();
    if (taken_.empty()) return;
    uv_idle_start(idle_.get(), [](uv_idle_t* idle) { static_cast<Door*>(idle->data)->on_idle(); });
  }

  // Also takes what has come since the last wake-up, for that is spent.
  void on_idle() {
    if (std::exchange(had_turn_, false)) return;  // by on_wake(), just before, in the same round
    handle_some();
    if (taken_.empty() && is_queue_empty()) uv_idle_stop(idle_.get());
  }

  void handle_some() BRAID_EXCLUDES(mutex_) {
    if (taken_.empty()) take_queue();
    // One message alone costs no look at the clock.
    handle_taken(taken_.size() < 2 ? UINT64_MAX : SystemClock().now_ns() + kHandleNsMax);
  }

  void take_queue() BRAID_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    queue_.swap(taken_);
  }

  bool is_queue_empty() BRAID_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return queue_.empty();
  }

  void handle_taken(uint64_t until_ns) {
    BRAID_ASSERT(!is_handling_, "a door's handler must not drain the door");
    if (taken_.empty()) return;
    is_handling_ = true;
    do {
      handler_(taken_[next_]);
    } while (++next_ < taken_.size() && SystemClock().now_ns() < until_ns);
    is_handling_ = false;
    if (next_ < taken_.size()) return;
    taken_.clear();
    next_ = 0;
  }

  Loop& loop_;
  const size_t capacity_;
  const std::function<void(Message&)> handler_;
  // Not uv_async_t: its receiver spins until the sender, whose processor it may have taken, is back
  // from its system call.
  const std::shared_ptr<const Fd> wake_ =
      std::make_shared<Fd>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Handle<uv_poll_t> poll_;
  Handle<uv_idle_t> idle_;  // active while something is left: keeps the loop from sleeping
  Mutex mutex_;
  std::vector<Message> queue_ BRAID_GUARDED_BY(mutex_);
  std::vector<Message> taken_;  // from the queue, to be handled
  size_t next_ = 0;             // of taken_
  bool is_handling_ = false;
  bool had_turn_ = false;  // in this round
};

}  // namespace braid
