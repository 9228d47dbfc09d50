// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <sys/types.h>

#include "base/fd.h"
#include "loop/poll.h"

namespace braid {

// Tells when the process at the other end of a Unix socket dies. The socket alone does not:
// children that a trainer forked hold it open when the trainer is dead. Loop's thread only; may be
// destroyed from within the callback.
class ProcessWatch {
 public:
  // nullptr: the process cannot be watched (other pid namespace, old kernel, no descriptor left).
  static std::unique_ptr<ProcessWatch> create(Loop& loop, int socket, pid_t pid,
                                              std::function<void()> died);

 private:
  ProcessWatch(Fd process, std::unique_ptr<Poll> poll)
      : process_(std::move(process)), poll_(std::move(poll)) {}

  Fd process_;  // pidfd
  std::unique_ptr<Poll> poll_;
};

}  // namespace braid
