// SPDX-License-Identifier: Apache-2.0
// What every function of the driver API does first: it counts, checks, and takes the driver's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string>

#include <cuda.h>

#include "functions.h"

namespace fake_cuda {

enum class Needs {
  kNothing,  // also before cuInit
  kInit,
  kContext,  // one is current, and it has no error
};

/// One call of the driver API, from its beginning to its end, on the thread that calls.
///
///   Call call(Function::kCtxSynchronize, Needs::kContext);
///   if (call.is_refused()) return call.refusal();
class Call {
 public:
  Call(Function function, Needs needs);

  bool is_refused() const { return refusal_ != CUDA_SUCCESS; }
  CUresult refusal() const { return refusal_; }

  /// Ends the hold on the driver's lock: a call that waits lets others begin.
  void let_others_begin();
  /// With FREE=locks: no other call runs or begins until this one ends.
  void hold_all();

 private:
  CUresult check(Function function, Needs needs) const;

  std::shared_lock<std::shared_mutex> shared_;
  std::unique_lock<std::shared_mutex> alone_;
  CUresult refusal_;
};

/// The process has called cuInit, and is not a child of the process that did.
void begin_process();
bool is_process_begun();
bool is_child_of_process();

/// Calls `each` for all threads and functions that were called.
using EachCall = std::function<void(int thread_id, const std::string& thread, const char* function,
                                    std::uint64_t calls)>;
void for_each_call(const EachCall& each);
std::uint64_t all_calls();
std::uint64_t calls_of(int thread_id);

}  // namespace fake_cuda
