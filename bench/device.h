// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace braid::bench {

struct DeviceOptions {
  std::vector<uint64_t> sizes;  // bytes of float32
  uint32_t iterations = 20;
  uint32_t warmup = 3;  // iterations before the measured ones; checked like them
  uint32_t timeout_ms = 60'000;
  std::string socket_path;
  bool as_json = false;
};

// Runs all-reduces of a GPU's memory as one rank of a job, each beside the same of the CPU's
// memory, in turns: for how long they hold the thread that calls, and when the result is there. All
// ranks call it with the same options; the GPU is the first one that the process sees. Each
// iteration has new data, begins with a barrier, and its results are compared with the exact sum.
// Rank 0 prints to stdout. The first wrong result, on any rank, ends the benchmark on all.
Status run_device(const DeviceOptions& options);

}  // namespace braid::bench
