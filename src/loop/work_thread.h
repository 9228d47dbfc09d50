// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "loop/door.h"

namespace braid {

// One thread for what would hold up a loop: system calls that take long. It takes tasks one after
// the other, in order; a user with much to do cuts it into slices, and asks again when one is done.
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
  // The thread itself touches nothing any more, and is joined later.
  ~WorkThread();

  // `work` on the thread, then `done` on the loop, never from within this call. Both are destroyed
  // where they run. False: too many tasks wait, and this one was not taken. Loop thread only.
  bool run(Task work, Task done);
  // Never refused: for work whose amount is bounded by other means. Any thread.
  void post(Task work);

 private:
  struct Item {
    Task work;
    Task done;
  };
  // What the thread has in common with the object, and may outlive it with.
  struct Shared {
    Mutex mutex;
    std::condition_variable_any has_work;
    std::condition_variable_any has_paused;
    bool is_ending BRAID_GUARDED_BY(mutex) = false;
    bool is_working BRAID_GUARDED_BY(mutex) = false;
    std::deque<Item> items BRAID_GUARDED_BY(mutex);
  };

  void push(Item item);
  static std::optional<Item> take_next(Shared& shared);
  static void work_off(Shared& shared, Door<Task>& done);

  Loop& loop_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  Door<Task> done_;  // the thread uses it only while it works
  std::thread thread_;
};

}  // namespace braid
