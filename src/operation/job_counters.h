// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/status.h"
#include "proto/types.h"

namespace braid {

// What all jobs of this node have done since the daemon started. Control loop only.
struct JobCounters {
  std::array<uint64_t, kCollectiveCount> operations{};  // that ended well, by Collective
  uint64_t operation_bytes = 0;                         // of their results
  std::array<uint64_t, kStatusCodeMax + 1>
      failures{};  // jobs that ended with an error, by StatusCode
};

}  // namespace braid
