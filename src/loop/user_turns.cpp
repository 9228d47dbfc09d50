// SPDX-License-Identifier: Apache-2.0
#include "loop/user_turns.h"

#include <utility>

#include "base/assert.h"

namespace braid {

UserTurns::UserTurns(Loop& loop, const Clock& clock) : loop_(loop), clock_(clock) {
  uv_idle_init(loop.uv(), idle_.get());
  idle_.set_initialised();
  idle_.get()->data = this;
}

void UserTurns::add(uid_t user, const void* owner, Piece piece) {
  BRAID_ASSERT_IN_LOOP(loop_);
  const auto [work, is_new] = work_.try_emplace(user);
  work->second.push_back({owner, std::move(piece)});
  if (is_new) turns_.push_back(user);
  uv_idle_start(idle_.get(),
                [](uv_idle_t* idle) { static_cast<UserTurns*>(idle->data)->run_round(); });
}

void UserTurns::drop(uid_t user, const void* owner) {
  BRAID_ASSERT_IN_LOOP(loop_);
  if (running_ == owner) running_ = nullptr;
  const auto work = work_.find(user);
  if (work == work_.end()) return;
  std::erase_if(work->second, [owner](const Task& task) { return task.owner == owner; });
  if (!work->second.empty()) return;
  work_.erase(work);
  std::erase(turns_, user);
}

void UserTurns::run_round() {
  if (turns_.empty()) {
    uv_idle_stop(idle_.get());
    return;
  }
  const uint64_t until_ns = clock_.now_ns() + kRoundNs;
  do {
    run_next();
  } while (!turns_.empty() && clock_.now_ns() < until_ns);
}

void UserTurns::run_next() {
  const uid_t user = turns_.front();
  turns_.pop_front();
  const auto work = work_.find(user);
  // Taken out first: the piece may add others, or drop its owner's.
  Task task = std::move(work->second.front());
  work->second.pop_front();
  if (work->second.empty()) {
    work_.erase(work);
  } else {
    turns_.push_back(user);
  }
  running_ = task.owner;
  const bool has_more = task.run();
  const bool goes_on = has_more && running_ == task.owner;
  running_ = nullptr;
  if (goes_on) add(user, task.owner, std::move(task.run));
}

}  // namespace braid
