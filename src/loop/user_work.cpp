// SPDX-License-Identifier: Apache-2.0
#include "loop/user_work.h"

namespace braid {

void UserWork::run(uid_t user, const void* owner, Task work, Task done) {
  const auto [tasks, is_new] = work_.try_emplace(user);
  tasks->second.push_back({owner, std::move(work), std::move(done)});
  if (is_new) turns_.push_back(user);
  run_next();
}

void UserWork::drop(uid_t user, const void* owner) {
  if (running_ == owner) running_ = nullptr;
  const auto tasks = work_.find(user);
  if (tasks == work_.end()) return;
  std::erase_if(tasks->second, [owner](const Item& item) { return item.owner == owner; });
  if (!tasks->second.empty()) return;
  work_.erase(tasks);
  std::erase(turns_, user);
}

void UserWork::run_next() {
  if (is_busy_ || turns_.empty()) return;
  const uid_t user = turns_.front();
  const auto tasks = work_.find(user);
  const Item& next = tasks->second.front();
  const bool is_taken = thread_.run(next.work, lifetime_.guard([this, done = next.done] {
    is_busy_ = false;
    const bool is_wanted = std::exchange(running_, nullptr) != nullptr;
    run_next();
    if (is_wanted) done();
  }));
  if (!is_taken) {
    if (!again_.is_active()) again_.start_once(kAgainMs, [this] { run_next(); });
    return;
  }
  is_busy_ = true;
  running_ = next.owner;
  turns_.pop_front();
  tasks->second.pop_front();
  if (tasks->second.empty()) {
    work_.erase(tasks);
  } else {
    turns_.push_back(user);
  }
}

}  // namespace braid
