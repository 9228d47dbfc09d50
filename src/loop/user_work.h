// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include <sys/types.h>

#include "base/lifetime.h"
#include "loop/timer.h"
#include "loop/work_thread.h"

namespace braid {

// Work that users' processes ask for and that would hold up the loop: it goes to a thread, one task
// at a time, so what others have the thread do waits for one of them at most. Users take turns.
// Loop thread only; the tasks themselves run elsewhere.
class UserWork {
 public:
  using Task = WorkThread::Task;

  // `thread` outlives it.
  UserWork(Loop& loop, WorkThread& thread) : thread_(thread), again_(loop) {}
  ~UserWork() { lifetime_.end(); }

  // `work` on the thread, then `done` on the loop, never from within this call. `owner` names them
  // for drop().
  void run(uid_t user, const void* owner, Task work, Task done);
  // No `done` of this owner comes any more, and no `work` begins; one that runs goes on.
  void drop(uid_t user, const void* owner);
  // Lets go of it on the thread: to free a great many things takes long.
  void dispose(std::shared_ptr<void> what) {
    thread_.post([what = std::move(what)] {});
  }

 private:
  static constexpr uint64_t kAgainMs = 10;  // where the thread has too much to do

  struct Item {
    const void* owner;
    Task work;
    Task done;
  };
  void run_next();

  WorkThread& thread_;
  std::map<uid_t, std::deque<Item>> work_;  // of users who have some
  std::deque<uid_t> turns_;                 // of the same users
  bool is_busy_ = false;                    // one is on the thread
  const void* running_ = nullptr;           // its owner; nullptr: dropped
  Timer again_;
  Lifetime lifetime_;
};

}  // namespace braid
