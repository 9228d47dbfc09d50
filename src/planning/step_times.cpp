// SPDX-License-Identifier: Apache-2.0
#include "planning/step_times.h"

#include <algorithm>
#include <utility>

namespace braid {

StepTimes::OpenStep& StepTimes::open(uint64_t step, uint64_t now_ns) {
  for (OpenStep& one : open_) {
    if (one.step == step) return one;
  }
  if (open_.size() >= kStepsOpenMax) open_.pop_front();
  return open_.emplace_back(OpenStep{step, now_ns, std::vector<uint64_t>(local_ranks_),
                                     std::vector<uint64_t>(local_ranks_, now_ns)});
}

void StepTimes::on_submit(uint32_t local_rank, uint64_t step, uint64_t now_ns) {
  OpenStep& one = open(step, now_ns);
  if (one.first_ns[local_rank] == 0) one.first_ns[local_rank] = now_ns;
  one.last_ns[local_rank] = now_ns;
}

std::optional<StepTimes::Ended> StepTimes::on_end(uint64_t step, uint64_t now_ns) {
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [step](const OpenStep& one) { return one.step == step; });
  if (found == open_.end()) return std::nullopt;
  const OpenStep ended = std::move(*found);
  open_.erase(found);
  const auto [first, last] = std::minmax_element(ended.last_ns.begin(), ended.last_ns.end());
  Ended times;
  times.step = step;
  times.ended_ns = now_ns;
  times.step_ns = now_ns - last_end_ns_.value_or(ended.opened_ns);
  // Steps may overlap: what is over when the step before ends was that one's.
  const auto waited_since = [&](uint64_t at_ns) {
    return now_ns - std::max(at_ns, last_end_ns_.value_or(0));
  };
  times.exposed_ns = waited_since(*last);
  for (size_t rank = 0; rank < local_ranks_; ++rank) {
    const uint64_t own_first_ns = ended.first_ns[rank], own_last_ns = ended.last_ns[rank];
    times.wait_ns.push_back(waited_since(own_last_ns));
    times.late_ns.push_back(own_last_ns - *first);
    times.backward_ns.push_back(own_first_ns == 0 ? 0 : own_last_ns - own_first_ns);
    const uint64_t before_ns = last_end_ns_.value_or(own_first_ns);
    times.before_ns.push_back(own_first_ns > before_ns ? own_first_ns - before_ns : 0);
  }
  if (last_end_ns_) {
    if (kept_.size() >= kStepsKept) kept_.pop_front();
    kept_.push_back(times);
  }
  last_end_ns_ = now_ns;
  return times;
}

}  // namespace braid
