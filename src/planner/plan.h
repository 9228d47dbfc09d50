// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"

namespace braid {

// Which tensors form one reduction, in sending order. Groups are contiguous in the workload's order
// and cover it without a gap: [0, a), [a, b), …
struct Plan {
  struct Group {
    uint32_t begin = 0;   // first tensor: a place in Workload::tensors
    uint32_t end = 0;     // one past the last
    uint32_t pieces = 1;  // equal units it is sent in (a multi-stream planner splits large groups)
    bool operator==(const Group&) const = default;
  };
  std::vector<Group> groups;
  bool operator==(const Plan&) const = default;
};

// Whether it covers `tensors` tensors as said above.
Status check_plan(const Plan& plan, size_t tensors);

}  // namespace braid
