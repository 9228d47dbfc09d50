// SPDX-License-Identifier: Apache-2.0
#include "loop/work_thread.h"

#include <pthread.h>
#include <signal.h>

namespace braid {

WorkThread::WorkThread(Loop& loop, const std::string& name)
    : loop_(loop), done_(loop, kTasksMax, [](Task& done) { done(); }) {
  thread_ = std::thread([this, name] {
    // Signals are for the loops' threads.
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    ::pthread_setname_np(::pthread_self(), name.c_str());
    work_off();
  });
}

WorkThread::~WorkThread() {
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
  }
  has_work_.notify_one();
  thread_.join();
}

bool WorkThread::run(Task work, Task done) {
  BRAID_ASSERT_IN_LOOP(loop_);
  {
    MutexLock lock(mutex_);
    if (items_.size() >= kTasksMax) return false;
  }
  push({std::move(work), std::move(done)});
  return true;
}

void WorkThread::post(Task work) { push({std::move(work), nullptr}); }

void WorkThread::push(Item item) {
  {
    MutexLock lock(mutex_);
    if (is_ending_) return;  // the item ends outside the lock, for it belongs to the caller
    items_.push_back(std::move(item));
  }
  has_work_.notify_one();
}

void WorkThread::work_off() {
  while (true) {
    Item item;
    {
      MutexLock lock(mutex_);
      while (items_.empty() && !is_ending_) has_work_.wait(mutex_);
      if (is_ending_) return;
      item = std::move(items_.front());
      items_.pop_front();
    }
    item.work();
    item.work = nullptr;  // what it holds on to goes here, before anybody hears of it
    if (item.done) done_.send_unbounded(std::move(item.done));
  }
}

}  // namespace braid
