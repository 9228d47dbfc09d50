// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdint>

#include <time.h>

namespace braid::bench {

// Until CLOCK_MONOTONIC shows `deadline_ns`; at once if it does already. Sleeping to points in time
// instead of for durations, late wake-ups do not add up.
inline void sleep_until(uint64_t deadline_ns) {
  const timespec deadline{static_cast<time_t>(deadline_ns / 1'000'000'000),
                          static_cast<long>(deadline_ns % 1'000'000'000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) {
  }
}

}  // namespace braid::bench
