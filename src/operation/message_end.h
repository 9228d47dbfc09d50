// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

// One end of a message, as a local rank submits it.
struct MessageEnd {
  uint32_t local_rank = 0;
  uint64_t ticket = 0;
  uint32_t peer = 0;  // the other rank; a receive's may be proto::kAnyRank
  uint64_t tag = 0;
  uint64_t bytes = 0;
  const uint8_t* input = nullptr;  // a send's, mapped
  uint64_t submitted_ns = 0;
  uint64_t deadline_ns = 0;
  uint32_t timeout_ms = 0;

  void begin_at(uint64_t now_ns) {
    submitted_ns = now_ns;
    deadline_ns = now_ns + uint64_t{timeout_ms} * 1'000'000;
  }
};

}  // namespace braid
