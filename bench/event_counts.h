// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/status.h"

namespace braid::bench {

// Counts what one process has done since this object was made: system calls, by the kernel's
// tracepoint raw_syscalls:sys_enter, and wake-ups, which are its voluntary context switches. All
// threads count, also those that begin later. One thread.
class EventCounts {
 public:
  explicit EventCounts(pid_t process);

  // An error, always the same one: they cannot be counted here. It says what would help.
  Result<uint64_t> system_calls() const;
  // The threads that live now count, each since it began.
  Result<uint64_t> wake_ups() const;

 private:
  Status open_counters();

  pid_t process_;
  std::vector<Fd> counters_;  // one of each thread
  Status opened_;
};

// The process that listens on a Unix socket.
Result<pid_t> process_behind(const std::string& socket_path);

}  // namespace braid::bench
