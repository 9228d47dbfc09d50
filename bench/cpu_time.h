// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

namespace braid::bench {

// What all threads of this process have used so far, user and system time, in seconds.
inline double process_cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

}  // namespace braid::bench
