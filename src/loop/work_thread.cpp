// SPDX-License-Identifier: Apache-2.0
#include "loop/work_thread.h"

#include <pthread.h>
#include <signal.h>

#include "loop/ended_threads.h"

namespace braid {

WorkThread::WorkThread(Loop& loop, const std::string& name)
    : loop_(loop), done_(loop, kTasksMax, [](Task& done) { done(); }) {
  thread_ = std::thread([shared = shared_, &done = done_, name] {
    // Signals are for the loops' threads.
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    ::pthread_setname_np(::pthread_self(), name.c_str());
    work_off(*shared, done);
  });
}

WorkThread::~WorkThread() {
  std::deque<Item> dropped;  // ends outside the lock: what a task holds may post another one
  {
    MutexLock lock(shared_->mutex);
    shared_->is_ending = true;
    dropped.swap(shared_->items);
    while (shared_->is_working) shared_->has_paused.wait(shared_->mutex);
  }
  shared_->has_work.notify_one();
  join_later(std::move(thread_));
}

bool WorkThread::run(Task work, Task done) {
  BRAID_ASSERT_IN_LOOP(loop_);
  {
    MutexLock lock(shared_->mutex);
    if (shared_->items.size() >= kTasksMax) return false;
  }
  push({std::move(work), std::move(done)});
  return true;
}

void WorkThread::post(Task work) { push({std::move(work), nullptr}); }

void WorkThread::push(Item item) {
  {
    MutexLock lock(shared_->mutex);
    if (shared_->is_ending) return;  // the item ends outside the lock, for it belongs to the caller
    shared_->items.push_back(std::move(item));
  }
  shared_->has_work.notify_one();
}

// None: the object has ended.
std::optional<WorkThread::Item> WorkThread::take_next(Shared& shared) {
  MutexLock lock(shared.mutex);
  shared.is_working = false;
  if (shared.is_ending) shared.has_paused.notify_one();
  while (shared.items.empty() && !shared.is_ending) shared.has_work.wait(shared.mutex);
  if (shared.is_ending) return std::nullopt;
  Item next = std::move(shared.items.front());
  shared.items.pop_front();
  shared.is_working = true;
  return next;
}

void WorkThread::work_off(Shared& shared, Door<Task>& done) {
  while (auto item = take_next(shared)) {
    item->work();
    item->work = nullptr;  // what it holds on to goes here, before anybody hears of it
    if (item->done) done.send_unbounded(std::move(item->done));
  }
}

}  // namespace braid
