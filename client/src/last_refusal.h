// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "base/status.h"

namespace braid::client {

// Why what this rank asked for last was refused, if it was. A rank that leaves its job then says
// so: others may wait for what was refused. Any thread; its lock is taken last.
class LastRefusal {
 public:
  // Returns what it is given: the answer to a question.
  Status note(Status answer);
  // With the refusal, unless the reason names it already.
  std::string add_to(std::string reason) const;

 private:
  std::atomic<bool> is_refused_{false};
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace braid::client
