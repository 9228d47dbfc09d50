// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include <sys/types.h>

#include "base/clock.h"
#include "loop/loop.h"

namespace braid {

// Work that users' processes ask for, in small pieces: a millisecond of it in each round of the
// loop, then the rest of the loop has its turn. Users take turns, a piece each, however many pieces
// one of them has. Destroying it drops what has not run. Loop thread only.
class UserTurns {
 public:
  static constexpr uint64_t kRoundNs = 1'000'000;  // no piece is begun later in a round

  // True: there is more of it; it is called again when the user's other pieces have had their turn.
  using Piece = std::function<bool()>;

  // `clock` outlives it.
  UserTurns(Loop& loop, const Clock& clock);

  // `owner` names the piece for drop(). Never runs from within this call.
  void add(uid_t user, const void* owner, Piece piece);
  // The user's pieces of this owner do not run any more; also from within one of them.
  void drop(uid_t user, const void* owner);

 private:
  struct Task {
    const void* owner;
    Piece run;
  };

  void run_round();
  void run_next();

  Loop& loop_;
  const Clock& clock_;
  Handle<uv_idle_t> idle_;                  // active while there is work: the loop does not sleep
  std::map<uid_t, std::deque<Task>> work_;  // of users who have some
  std::deque<uid_t> turns_;                 // of the same users
  const void* running_ = nullptr;           // the owner of the piece that runs; nullptr: dropped
};

}  // namespace braid
