// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "job/input_arenas.h"
#include "loop/user_work.h"

namespace braid {

// How much memory the input arenas of a job's local ranks hold, as it was when somebody last asked
// the kernel. That takes a system call for each arena, and a user may have tens of thousands: so it
// is done by the thread of UserWork, in its user's turn. Control loop only.
class ArenaMemory {
 public:
  using OfRanks = std::vector<std::shared_ptr<const InputArenas::List>>;

  // `arenas`: by local rank, nullptr for one that has gone. `looked`: how much all hold together,
  // after each look. `work` outlives this.
  ArenaMemory(UserWork& work, uid_t user, std::function<OfRanks()> arenas,
              std::function<void(uint64_t bytes)> looked)
      : work_(work), user_(user), arenas_(std::move(arenas)), looked_(std::move(looked)) {}
  ~ArenaMemory() { work_.drop(user_, this); }
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;

  // Asks the kernel; while it is being asked, once more after that.
  void look();
  // By the last look that has ended; 0: there was none, or the rank came later.
  uint64_t bytes_of(size_t local_rank) const {
    return local_rank < bytes_.size() ? bytes_[local_rank] : 0;
  }

 private:
  UserWork& work_;
  const uid_t user_;
  const std::function<OfRanks()> arenas_;
  const std::function<void(uint64_t)> looked_;
  std::vector<uint64_t> bytes_;  // by local rank
  bool is_looking_ = false;
  bool is_asked_again_ = false;
};

}  // namespace braid
