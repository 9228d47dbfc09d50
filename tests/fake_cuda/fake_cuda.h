// SPDX-License-Identifier: Apache-2.0
// What tests ask the fake CUDA driver, beside the public driver API that it has.
// tests/fake_cuda/settings.h has the settings. Every function may be called from any thread, and
// none counts as a call of the driver.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fake_cuda_counts {
  // Since the process began:
  uint64_t calls;       // calls of the driver API
  uint64_t host_waits;  // calls that held their thread until a stream, an event or the GPU was done
  uint64_t
      unregistered_copies;  // asynchronous copies from or to host memory that is not registered
  uint64_t missing_pages;   // pages of registered memory that a copy or a word found punched out or
                            // discarded
  uint64_t copies, copied_bytes;
  uint64_t kernels;
  // Now:
  uint64_t contexts, streams, events;  // without the default streams
  uint64_t allocations, allocated_bytes;
  uint64_t registrations, registered_bytes;
  uint64_t pending_works;    // queued and not done yet
  uint64_t waiting_streams;  // that wait for a word
} fake_cuda_counts;

void fake_cuda_get_counts(fake_cuda_counts* counts);

/// Calls of the driver API by the thread with this id (gettid); 0 if there were none.
uint64_t fake_cuda_calls_of(int thread_id);

/// Calls `each` for each thread and function that it has called, with the number of calls. Threads
/// that have ended are among them.
void fake_cuda_thread_calls(void (*each)(int thread_id, const char* thread_name,
                                         const char* function, uint64_t calls, void* argument),
                            void* argument);

/// Queues a kernel: `function` runs on the thread of the stream's hardware queue, in stream order,
/// and must not call the driver. `stream`: a CUstream. Returns a CUresult.
int fake_cuda_launch(void* stream, void (*function)(void*), void* argument);

/// From then on the device has this error (a CUresult), as if its work had failed.
void fake_cuda_fail_device(int device, int error);

/// Where the library itself reads and writes this device address; NULL if it is none. A test may
/// touch the bytes in a kernel, or while no stream uses them.
void* fake_cuda_bytes(uint64_t device_address);

#ifdef __cplusplus
}
#endif
