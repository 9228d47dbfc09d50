// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "loop/loop.h"

namespace braid {

// Runs tasks in order, one in each round of the loop. For calls that take a millisecond each and
// come in numbers: the rest of the loop has its turn after each of them. Destroying it drops what
// has not run. Loop thread only.
class PacedTasks {
 public:
  explicit PacedTasks(Loop& loop);

  // `owner` names the task for drop().
  void add(const void* owner, std::function<void()> task);
  // Tasks of this owner that have not run do not run any more.
  void drop(const void* owner);

 private:
  struct Task {
    const void* owner;
    std::function<void()> run;
  };

  void run_next();

  Loop& loop_;
  Handle<uv_idle_t> idle_;  // active while there are tasks: the loop does not sleep
  std::deque<Task> tasks_;
};

}  // namespace braid
