// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

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
    const int error = uv_async_init(loop.uv(), async_.get(), [](uv_async_t* async) {
      static_cast<Door*>(async->data)->drain();
    });
    BRAID_ASSERT(error == 0, "uv_async_init fails only without descriptors at start-up");
    async_.set_initialised();
    async_.get()->data = this;
    queue_.reserve(capacity < 256 ? capacity : 256);
  }

  // False when the queue is full: the message was not taken.
  bool send(Message message) BRAID_EXCLUDES(mutex_) { return push(std::move(message), capacity_); }

  // Never refused: for messages whose number the sender bounds by other means (one per job, one per
  // loop).
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
    MutexLock lock(mutex_);
    if (queue_.size() >= limit) return false;
    const bool was_empty = queue_.empty();
    queue_.push_back(std::move(message));
    // Under the lock: this message may be the one that ends the door, and drain() needs no wake-up
    // to come by.
    if (was_empty) uv_async_send(async_.get());
    return true;
  }

  const size_t capacity_;
  const std::function<void(Message&)> handler_;
  Handle<uv_async_t> async_;
  Mutex mutex_;
  std::vector<Message> queue_ BRAID_GUARDED_BY(mutex_);
  std::vector<Message> draining_;
};

}  // namespace braid
