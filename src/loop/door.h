// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mutex.h"
#include "loop/loop.h"

namespace braid {

// The way into a loop from other threads: a bounded queue, emptied on the loop by one callback per
// message, in order. send() may be called from any thread while the door lives; the door is made
// and destroyed on its loop.
template <typename Message>
class Door {
 public:
  Door(Loop& loop, size_t capacity, std::function<void(Message&)> handler)
      : capacity_(capacity), handler_(std::move(handler)) {
    BRAID_ASSERT(wake_->is_valid() && uv_poll_init(loop.uv(), poll_.get(), wake_->get()) == 0,
                 "an eventfd fails only without descriptors at start-up");
    poll_.set_initialised();
    poll_.get()->data = this;
    uv_poll_start(poll_.get(), UV_READABLE,
                  [](uv_poll_t* poll, int, int) { static_cast<Door*>(poll->data)->on_wake(); });
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
  // calls it by itself.
  void drain() BRAID_EXCLUDES(mutex_) {
    BRAID_ASSERT(draining_.empty(), "a door's handler must not drain the door");
    {
      MutexLock lock(mutex_);
      queue_.swap(draining_);
    }
    for (auto& message : draining_) handler_(message);
    draining_.clear();
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
    drain();
  }

  const size_t capacity_;
  const std::function<void(Message&)> handler_;
  // Not uv_async_t: its receiver spins until the sender, whose processor it may have taken, is back
  // from its system call.
  const std::shared_ptr<const Fd> wake_ =
      std::make_shared<Fd>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Handle<uv_poll_t> poll_;
  Mutex mutex_;
  std::vector<Message> queue_ BRAID_GUARDED_BY(mutex_);
  std::vector<Message> draining_;
};

}  // namespace braid
