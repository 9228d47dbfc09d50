// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "timeline/node_timeline.h"

namespace braid {

// A step of training as one rank sees it: its planned gradients and their results.
struct RankStep {
  uint64_t first_submit = 0;
  uint64_t last_submit = 0;
  // When the last result of the step came, of those that are known; nothing: none is.
  std::optional<uint64_t> last_result;
};

// By step, from `first_step` on: those before may be cut.
std::map<uint64_t, RankStep> training_steps(const NodeTimeline& timeline, uint32_t rank,
                                            uint64_t first_step);

}  // namespace braid
