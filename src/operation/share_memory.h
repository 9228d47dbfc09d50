// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "ipc/shared_memory.h"
#include "loop/work_thread.h"

namespace braid {

// Memory that is unmapped and closed by `worker`, whichever loop lets go of it last: a gigabyte
// of small pages takes a tenth of a second to give back. The worker outlives it.
inline std::shared_ptr<SharedMemory> share_memory(SharedMemory memory, WorkThread& worker) {
  return {new SharedMemory(std::move(memory)), [&worker](SharedMemory* last) {
            // Also where the task is dropped, since the worker ends, the memory goes.
            worker.post([owner = std::shared_ptr<SharedMemory>(last)] {});
          }};
}

}  // namespace braid
