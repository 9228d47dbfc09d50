// SPDX-License-Identifier: Apache-2.0
#include "open_jobs.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

#include "connection.h"
#include "job.h"

namespace braid::client {
namespace {

// All jobs together. Leaving one takes 2 s where the daemon does not answer.
constexpr uint64_t kLeaveAllNs = 5'000'000'000;

struct OpenJobs {
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::vector<Job*> jobs;  // oldest first
};

// Never freed: threads may still call braid while the process ends.
std::atomic<OpenJobs*> open_jobs = nullptr;

// This process' list. A forked child makes a new one, as a thread that it does not have may have
// held the mutex of the one that it inherited.
OpenJobs& own_list() {
  OpenJobs* list = open_jobs.load();
  while (list == nullptr || list->process != ::getpid()) {
    auto* made = new OpenJobs();
    if (open_jobs.compare_exchange_strong(list, made)) return *made;
    delete made;
  }
  return *list;
}

// A destructor of the library, not atexit(): what the program itself does at its end, with its
// static objects too, comes before.
__attribute__((destructor)) void leave_open_jobs() {
  OpenJobs* list = open_jobs.load();
  if (list == nullptr || list->process != ::getpid()) return;
  const uint64_t deadline_ns = now_ns() + kLeaveAllNs;
  try {
    // exit() may have been called by a signal handler, in the middle of a call of braid.
    const auto lock = lock_until(list->mutex, deadline_ns);
    if (!lock.owns_lock()) return;
    // With the mutex held: other threads go on, and may close a job.
    for (auto job = list->jobs.rbegin(); job != list->jobs.rend(); ++job)
      (*job)->leave_at_exit(deadline_ns);
  } catch (const std::exception&) {
    // Out of memory: the daemon sees the end of the process, as of one that died.
  }
}

}  // namespace

void add_open_job(Job& job) {
  OpenJobs& list = own_list();
  const std::lock_guard lock(list.mutex);
  list.jobs.push_back(&job);
}

void remove_open_job(Job& job) {
  OpenJobs& list = own_list();
  const std::lock_guard lock(list.mutex);
  std::erase(list.jobs, &job);
}

}  // namespace braid::client
