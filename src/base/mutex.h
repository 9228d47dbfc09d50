// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

// Clang's thread-safety annotations; nothing on other compilers.
#if defined(__clang__)
#define BRAID_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define BRAID_THREAD_ANNOTATION(x)
#endif
#define BRAID_GUARDED_BY(x) BRAID_THREAD_ANNOTATION(guarded_by(x))
#define BRAID_REQUIRES(...) BRAID_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define BRAID_EXCLUDES(...) BRAID_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace braid {

class BRAID_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() BRAID_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() BRAID_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

class BRAID_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) BRAID_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() BRAID_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace braid
