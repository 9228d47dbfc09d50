// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/types.h"

namespace braid::bench {

struct AllReduceOptions {
  std::vector<uint64_t> sizes;  // bytes
  DataType dtype = DataType::Float32;
  uint32_t iterations = 20;
  uint32_t warmup = 3;  // iterations before the measured ones; checked like them
  uint32_t timeout_ms = 60'000;
  std::string socket_path;
  bool as_json = false;
};

// Nothing if `name` is no dtype.
Result<DataType> parse_dtype(const std::string& name);

// Runs all-reduces as one rank of a job; all ranks call it with the same options. Each iteration
// has new data, begins with a barrier, lasts as long as on the slowest rank, and its result is
// compared with the exact sum. Rank 0 prints to stdout. The first wrong result, on any rank, ends
// the benchmark on all.
Status run_all_reduce(const AllReduceOptions& options);

}  // namespace braid::bench
