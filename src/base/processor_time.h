// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

// What all threads of this process have run since they began, and how long they were ready to run
// while other threads, of whatever process, had the processors. 0 where the kernel does not say
// (CONFIG_SCHED_INFO). A thread that has ended counts no more.
struct ProcessorTime {
  uint64_t ran_ns = 0;
  uint64_t waited_ns = 0;
};
ProcessorTime processor_time();

}  // namespace braid
