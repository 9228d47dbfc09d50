// SPDX-License-Identifier: Apache-2.0
// What tests ask the fake NCCL, beside NCCL's own functions. tests/fake_nccl/settings.h has the
// settings. Every function may be called from any thread.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fake_nccl_counts {
  // Since the process began:
  uint64_t calls;        // calls of NCCL's functions
  uint64_t collectives;  // also sends and receives: those that HANG and ASYNC_ERROR count
  uint64_t kernels;      // queued
  // Now:
  uint64_t communicators;    // neither destroyed nor aborted
  uint64_t pending_kernels;  // queued and not ended
} fake_nccl_counts;

void fake_nccl_get_counts(fake_nccl_counts* counts);

/// Calls of NCCL's functions by the thread with this id (gettid); 0 if there were none.
uint64_t fake_nccl_calls_of(int thread_id);

/// Calls `each` for each thread and function that it has called, with the number of calls. Threads
/// that have ended are among them.
void fake_nccl_thread_calls(void (*each)(int thread_id, const char* function, uint64_t calls,
                                         void* argument),
                            void* argument);

#ifdef __cplusplus
}
#endif
