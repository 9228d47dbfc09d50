// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/status.h"

namespace braid::gpu_probe {

// Another process of a program, which is killed with this object if it still runs.
class Child {
 public:
  // It writes to the pipe `output`.
  static Result<Child> start(const std::string& program, const std::vector<std::string>& arguments);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  // The next bytes it says; empty: it ended, or said nothing in time.
  std::string read(int timeout_ms);
  // Its exit code when its output has ended; -1 if a signal ended it.
  int wait();

 private:
  Child(pid_t pid, Fd output) : pid_(pid), output_(std::move(output)) {}

  pid_t pid_;
  Fd output_;
};

}  // namespace braid::gpu_probe
