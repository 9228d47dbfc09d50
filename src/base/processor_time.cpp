// SPDX-License-Identifier: Apache-2.0
#include "base/processor_time.h"

#include <cstdio>
#include <filesystem>

#include "base/read_file.h"

namespace braid {

ProcessorTime processor_time() {
  ProcessorTime sum;
  std::error_code error;
  // /proc/PID/task/TID/schedstat: ran, waited, slices (Documentation/scheduler/sched-stats.rst).
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const auto text = read_file(task.path().string() + "/schedstat", 256);
    unsigned long long ran_ns = 0, waited_ns = 0;
    // A thread may end meanwhile.
    if (!text || std::sscanf(text->c_str(), "%llu %llu", &ran_ns, &waited_ns) != 2) continue;
    sum.ran_ns += ran_ns;
    sum.waited_ns += waited_ns;
  }
  return sum;
}

}  // namespace braid
