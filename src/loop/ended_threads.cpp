// SPDX-License-Identifier: Apache-2.0
#include "loop/ended_threads.h"

#include <utility>
#include <vector>

#include "base/mutex.h"

namespace braid {
namespace {

struct EndedThreads {
  Mutex mutex;
  std::vector<std::thread> threads BRAID_GUARDED_BY(mutex);
};

EndedThreads& ended() {
  static EndedThreads& all = *new EndedThreads;  // lives for ever: threads may outlive statics
  return all;
}

}  // namespace

void join_later(std::thread thread) {
  MutexLock lock(ended().mutex);
  ended().threads.push_back(std::move(thread));
}

void join_ended_threads() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(ended().mutex);
    threads.swap(ended().threads);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace braid
