// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "ipc/segment.h"
#include "loop/work_thread.h"

namespace braid {

// A segment that is unmapped and closed by `worker`, whichever loop lets go of it last: a gigabyte
// of small pages takes a tenth of a second to give back. The worker outlives it.
inline std::shared_ptr<Segment> share_segment(Segment segment, WorkThread& worker) {
  return {new Segment(std::move(segment)), [&worker](Segment* last) {
            // Also where the task is dropped, since the worker ends, the segment goes.
            worker.post([owner = std::shared_ptr<Segment>(last)] {});
          }};
}

}  // namespace braid
