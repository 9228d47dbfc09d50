// SPDX-License-Identifier: Apache-2.0
#include "loop/paced_tasks.h"

#include <utility>

#include "base/assert.h"

namespace braid {

PacedTasks::PacedTasks(Loop& loop) : loop_(loop) {
  uv_idle_init(loop.uv(), idle_.get());
  idle_.set_initialised();
  idle_.get()->data = this;
}

void PacedTasks::add(const void* owner, std::function<void()> task) {
  BRAID_ASSERT_IN_LOOP(loop_);
  tasks_.push_back({owner, std::move(task)});
  uv_idle_start(idle_.get(),
                [](uv_idle_t* idle) { static_cast<PacedTasks*>(idle->data)->run_next(); });
}

void PacedTasks::drop(const void* owner) {
  BRAID_ASSERT_IN_LOOP(loop_);
  std::erase_if(tasks_, [owner](const Task& task) { return task.owner == owner; });
}

void PacedTasks::run_next() {
  if (tasks_.empty()) {
    uv_idle_stop(idle_.get());
    return;
  }
  // Taken out first: the task may add others, or drop its owner's.
  const Task next = std::move(tasks_.front());
  tasks_.pop_front();
  next.run();
}

}  // namespace braid
