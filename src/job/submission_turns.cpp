// SPDX-License-Identifier: Apache-2.0
#include "job/submission_turns.h"

#include <algorithm>
#include <utility>

namespace braid {

void SubmissionTurns::ask(const std::shared_ptr<Submitter>& submitter) {
  BRAID_ASSERT_IN_LOOP(loop_);
  if (!std::exchange(submitter->is_waiting, true))
    waiting_.queue_of(submitter->job_key).push_back(submitter);
  if (std::exchange(round_, loop_.rounds()) != loop_.rounds()) entries_left_ = kEntriesPerRound;
  while (entries_left_ != 0 && waiting_.has_next()) give_turn();
}

void SubmissionTurns::give_turn() {
  auto& queue = waiting_.begin_turn();
  const std::shared_ptr<Submitter> submitter = std::move(queue.front());
  queue.pop_front();
  submitter->is_waiting = false;
  const size_t entries_max = std::min(entries_left_, kEntriesPerTurn);
  const auto take = submitter->take;  // who is called may clear it
  const size_t taken = take ? take(entries_max) : 0;
  // To look into a ring costs something, too.
  waiting_.end_turn(std::max<size_t>(taken, 1), submitter->weight);
  entries_left_ -= taken;
  if (taken < entries_max || !submitter->take) return;
  submitter->is_waiting = true;
  waiting_.queue_of(submitter->job_key).push_back(submitter);
}

}  // namespace braid
