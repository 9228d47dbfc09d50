// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "loop/door.h"

namespace braid {

// One thread for what would hold up a loop: system calls that take long. It takes tasks one after
// the other, in order; whoever has much to do cuts it into slices, and asks again when one is done.
// Made and destroyed on the loop's thread.
class WorkThread {
 public:
  using Task = std::function<void()>;
  static constexpr size_t kTasksMax = 4096;

  WorkThread(Loop& loop, const std::string& name);
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;
  // The task that runs now is waited for, later ones are dropped, and so is every `done` that has
  // not been called. What is posted meanwhile, by the end of what a task held, is dropped at once.
  ~WorkThread();

  // `work` on the thread, then `done` on the loop, never from within this call. Both are destroyed
  // where they run. False: too many tasks wait, and this one was not taken. Loop thread only.
  bool run(Task work, Task done) BRAID_EXCLUDES(mutex_);
  // Never refused: for work whose amount is bounded by other means. Any thread.
  void post(Task work) BRAID_EXCLUDES(mutex_);

 private:
  struct Item {
    Task work;
    Task done;
  };
  void push(Item item) BRAID_EXCLUDES(mutex_);
  void work_off() BRAID_EXCLUDES(mutex_);

  Loop& loop_;
  Mutex mutex_;
  std::condition_variable_any has_work_;
  bool is_ending_ BRAID_GUARDED_BY(mutex_) = false;
  // After what push() needs: tasks that are dropped may post others.
  std::deque<Item> items_ BRAID_GUARDED_BY(mutex_);
  Door<Task> done_;
  std::thread thread_;
};

}  // namespace braid
