// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace fake_cuda {

/// As in fake_cuda.h.
struct Counters {
  std::atomic<std::uint64_t> host_waits = 0, unregistered_copies = 0, copies = 0, copied_bytes = 0,
                             kernels = 0;
};

inline Counters& counters() {
  static Counters* const kCounters = new Counters;
  return *kCounters;
}

}  // namespace fake_cuda
