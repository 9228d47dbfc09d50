// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include <array>
#include <atomic>
#include <fstream>
#include <list>
#include <mutex>
#include <optional>

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "context.h"
#include "engine.h"
#include "settings.h"

namespace fake_cuda {
namespace {

#define FAKE_CUDA_ONE(name, suffix, version) +1
constexpr std::size_t kFunctions = 0 FAKE_CUDA_FUNCTIONS(FAKE_CUDA_ONE);
#undef FAKE_CUDA_ONE
// Counting orders nothing that a program does: a thread sanitizer would take it for the program's
// own order.
constexpr auto kUnordered = std::memory_order_relaxed;
using CallNumbers = std::array<std::atomic<std::uint64_t>, kFunctions>;

struct ThreadCalls {
  int thread_id = gettid();
  std::string name;  // once the thread has ended
  CallNumbers calls{};
};

struct AllCalls {
  std::mutex mutex;
  std::list<ThreadCalls> threads;
  CallNumbers calls{};
};

AllCalls& recorded() {
  static AllCalls* const kCalls = new AllCalls;
  return *kCalls;
}

/// A thread's record. Its name is kept when the thread ends.
class ThreadRecord {
 public:
  ThreadRecord() {
    const std::scoped_lock lock(recorded().mutex);
    calls_ = &recorded().threads.emplace_back();
  }
  ~ThreadRecord() {
    std::array<char, 17> name{};
    prctl(PR_GET_NAME, name.data());
    const std::scoped_lock lock(recorded().mutex);
    calls_->name = name.data();
  }
  ThreadRecord(const ThreadRecord&) = delete;
  ThreadRecord& operator=(const ThreadRecord&) = delete;

  void count(Function function) {
    calls_->calls[static_cast<std::size_t>(function)].fetch_add(1, kUnordered);
  }

 private:
  ThreadCalls* calls_;
};

/// Returns the error that FAIL sets for this call.
std::optional<CUresult> count_call(Function function) {
  static thread_local ThreadRecord record;
  record.count(function);
  const std::uint64_t number =
      recorded().calls[static_cast<std::size_t>(function)].fetch_add(1, kUnordered) + 1;
  for (const Failure& failure : settings().failures) {
    if (failure.call == number &&
        function_rows()[static_cast<std::size_t>(function)].is_called(failure.function)) {
      return failure.error;
    }
  }
  return std::nullopt;
}

std::string name_of(const ThreadCalls& thread) {
  std::string name = thread.name;
  if (name.empty()) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread.thread_id) + "/comm");
    std::getline(file, name);
  }
  return name;
}

std::atomic<bool> is_begun = false;
std::atomic<bool> is_child = false;

/// Calls hold it shared, and one that locks holds it alone. Who wants to have it alone is next.
struct DriverLock {
  std::mutex next;
  std::shared_mutex held;
};

DriverLock& driver_lock() {
  static auto* const kLock = new DriverLock;
  return *kLock;
}

}  // namespace

Call::Call(Function function, Needs needs) : refusal_(check(function, needs)) {
  // Without a need there is no lock: to a thread sanitizer it would order what the driver does not
  // order.
  if (!is_refused() && needs != Needs::kNothing && settings().frees == Frees::kLock) {
    const std::scoped_lock turn(driver_lock().next);
    shared_ = std::shared_lock(driver_lock().held);
  }
}

CUresult Call::check(Function function, Needs needs) const {
  if (is_child_of_process()) {
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  if (const auto failure = count_call(function)) {
    return *failure;
  }
  if (needs == Needs::kNothing) {
    return CUDA_SUCCESS;
  }
  if (!is_process_begun()) {
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  if (Engine::get().has_ended()) {
    return CUDA_ERROR_DEINITIALIZED;
  }
  if (Engine::is_queue_thread()) {
    return CUDA_ERROR_NOT_PERMITTED;
  }
  if (needs == Needs::kContext) {
    const auto device = current_device();
    return device ? check_context(*device) : CUDA_ERROR_INVALID_CONTEXT;
  }
  return CUDA_SUCCESS;
}

void Call::let_others_begin() { shared_ = {}; }

void Call::hold_all() {
  if (settings().frees == Frees::kLock && !alone_.owns_lock()) {
    shared_ = {};
    const std::scoped_lock turn(driver_lock().next);
    alone_ = std::unique_lock(driver_lock().held);
  }
}

// fork() says so, because getpid() is a system call, and each call of the driver asks.
void begin_process() {
  if (!is_begun.exchange(true)) {
    pthread_atfork(nullptr, nullptr, [] { is_child = true; });
  }
}
bool is_process_begun() { return is_begun; }
bool is_child_of_process() { return is_child; }

void for_each_call(const EachCall& each) {
  const std::scoped_lock lock(recorded().mutex);
  for (const ThreadCalls& thread : recorded().threads) {
    const std::string name = name_of(thread);
    for (std::size_t function = 0; function < kFunctions; ++function) {
      if (const std::uint64_t calls = thread.calls[function]) {
        each(thread.thread_id, name, function_rows()[function].symbol, calls);
      }
    }
  }
}

std::uint64_t all_calls() {
  std::uint64_t sum = 0;
  for (const auto& calls : recorded().calls) {
    sum += calls;
  }
  return sum;
}

std::uint64_t calls_of(int thread_id) {
  std::uint64_t sum = 0;
  const std::scoped_lock lock(recorded().mutex);
  for (const ThreadCalls& thread : recorded().threads) {
    for (const auto& calls : thread.calls) {
      sum += thread.thread_id == thread_id ? calls.load() : 0;
    }
  }
  return sum;
}

}  // namespace fake_cuda
