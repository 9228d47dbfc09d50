// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "ipc/shared_memory.h"
#include "ipc/user_quotas.h"
#include "job/known_pages.h"
#include "loop/work_thread.h"

namespace braid {

// The memory that one trainer has registered, in which its submissions name their inputs: numbered
// in order, that of OpenJob is 0. Control loop only.
class InputArenas {
 public:
  using List = std::vector<std::shared_ptr<SharedMemory>>;

  // `bytes_max`: of all together. `bytes`: ArenaBytes; `pages`: InputPages; `descriptors`: one of
  // each arena. `worker` outlives the arenas.
  InputArenas(WorkThread& worker, uint64_t bytes_max, UserCharge bytes, UserCharge pages,
              UserCharge descriptors)
      : worker_(worker),
        bytes_max_(bytes_max),
        charge_(std::move(bytes)),
        pages_(std::move(pages)),
        descriptors_(std::move(descriptors)) {}

  // One more; its number. After an error nothing has changed.
  Result<uint32_t> add(Fd memory, uint64_t bytes);

  // What lies there is read next: pages that are not there count as the user's, who has the daemon
  // make them. What is outside the arena is the caller's to refuse.
  // Costs no system call where that was so before and the arena has a seal against holes.
  Status count_missing_pages(uint32_t arena, uint64_t offset, uint64_t bytes);

  // It does not change: one more makes another list.
  const std::shared_ptr<const List>& all() const { return arenas_; }
  // nullptr: there is none of this number.
  const SharedMemory* find(uint32_t arena) const {
    return arena < arenas_->size() ? (*arenas_)[arena].get() : nullptr;
  }

 private:
  WorkThread& worker_;
  const uint64_t bytes_max_;
  UserCharge charge_;
  UserCharge pages_;
  UserCharge descriptors_;  // one of each
  std::shared_ptr<const List> arenas_ = std::make_shared<const List>();
  std::vector<KnownPages> known_;  // by arena
};

}  // namespace braid
