// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "base/job_turns.h"
#include "loop/loop.h"

namespace braid {

// Who takes submissions out of a ring, as SubmissionTurns sees it.
struct Submitter {
  uint64_t job_key = 0;
  uint32_t weight = 1;
  // Takes so many entries at most, and returns how many it took: fewer if there are no more. Empty:
  // the trainer has left its job.
  std::function<size_t(size_t entries_max)> take;
  bool is_waiting = false;  // for a turn
};

// Whose submissions are taken next. A round of the loop takes so many entries of all trainers
// together, and the jobs that have some in their rings take turns by weight. So a full ring holds
// up nobody: what stays in it waits there, and its trainer waits for room. Control loop only.
class SubmissionTurns {
 public:
  static constexpr size_t kEntriesPerRound = 256;
  static constexpr size_t kEntriesPerTurn = 16;

  explicit SubmissionTurns(Loop& loop) : loop_(loop) {}

  // There may be entries for this one. Gives turns to all that wait, while the round has room; who
  // still has entries afterwards asks again in the loop's next round.
  void ask(const std::shared_ptr<Submitter>& submitter);

 private:
  void give_turn();

  Loop& loop_;
  JobTurns<std::deque<std::shared_ptr<Submitter>>> waiting_;
  size_t entries_left_ = kEntriesPerRound;  // in this round
  uint64_t round_ = 0;
};

}  // namespace braid
