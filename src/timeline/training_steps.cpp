// SPDX-License-Identifier: Apache-2.0
#include "timeline/training_steps.h"

#include <algorithm>

namespace braid {

std::map<uint64_t, RankStep> training_steps(const NodeTimeline& timeline, uint32_t rank,
                                            uint64_t first_step) {
  std::map<uint64_t, RankStep> steps;
  for (const NodeTimeline::Submit& submit : timeline.submits) {
    if (submit.rank != rank || !submit.is_planned || submit.step < first_step) continue;
    const auto [place, is_new] = steps.try_emplace(submit.step, RankStep{submit.at, submit.at, {}});
    if (is_new) continue;
    place->second.first_submit = std::min(place->second.first_submit, submit.at);
    place->second.last_submit = std::max(place->second.last_submit, submit.at);
  }
  for (const NodeTimeline::Operation& operation : timeline.operations) {
    if (operation.plan == NodeTimeline::kNoPlan) continue;
    const auto step = steps.find(operation.step);
    if (step == steps.end()) continue;
    step->second.last_result = std::max(step->second.last_result.value_or(0), operation.end);
  }
  return steps;
}

}  // namespace braid
