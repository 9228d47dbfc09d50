// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "ipc/shared_memory.h"
#include "ipc/user_quotas.h"
#include "loop/work_thread.h"

namespace braid {

// The memory that one trainer has registered, in which its submissions name their inputs: numbered
// in order, that of OpenJob is 0. Control loop only.
class InputArenas {
 public:
  // `bytes_max`: of all together. `worker` outlives the arenas. `charge`: of the bytes.
  InputArenas(WorkThread& worker, uint64_t bytes_max, UserCharge charge, UserCharge descriptors)
      : worker_(worker),
        bytes_max_(bytes_max),
        charge_(std::move(charge)),
        descriptors_(std::move(descriptors)) {}

  // One more; its number. After an error nothing has changed.
  Result<uint32_t> add(Fd memory, uint64_t bytes);

  const std::vector<std::shared_ptr<SharedMemory>>& all() const { return arenas_; }
  // nullptr: there is none of this number.
  const SharedMemory* find(uint32_t arena) const {
    return arena < arenas_.size() ? arenas_[arena].get() : nullptr;
  }

 private:
  WorkThread& worker_;
  const uint64_t bytes_max_;
  UserCharge charge_;
  UserCharge descriptors_;  // one of each
  std::vector<std::shared_ptr<SharedMemory>> arenas_;
};

}  // namespace braid
