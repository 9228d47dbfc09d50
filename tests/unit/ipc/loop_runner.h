// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include <unistd.h>

#include "base/clock.h"
#include "loop/loop.h"

namespace braid {

// Turns the loop on this thread until `is_over`; false if that is not so after a very long time.
inline bool run_until(Loop& loop, const std::function<bool()>& is_over) {
  constexpr uint64_t kPatienceNs = 20'000'000'000;
  const SystemClock clock;
  const uint64_t deadline_ns = clock.now_ns() + kPatienceNs;
  while (!is_over()) {
    if (clock.now_ns() > deadline_ns) return false;
    uv_run(loop.uv(), UV_RUN_NOWAIT);
    ::usleep(200);
  }
  return true;
}

// A few rounds, in which everything that is ready is handled.
inline void run_rounds(Loop& loop, int rounds = 20) {
  for (int i = 0; i < rounds; ++i) uv_run(loop.uv(), UV_RUN_NOWAIT);
}

}  // namespace braid
