// SPDX-License-Identifier: Apache-2.0
#include "planning/set_rhythm.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace braid {

void SetRhythm::on_begin(uint64_t set, uint64_t now_ns) {
  Steps& steps = steps_[set];
  if (steps.begun < kStepsIgnored) {
    ++steps.begun;
    return;
  }
  std::vector<Before> before;
  for (auto begin = begins_.rbegin(); begin != begins_.rend() && begin->set != set; ++begin) {
    if (std::ranges::find(before, begin->set, &Before::set) == before.end())
      before.push_back({begin->set, now_ns - std::min(now_ns, begin->at_ns)});
  }
  steps.kept.push_back(std::move(before));
  if (steps.kept.size() > kStepsKept) steps.kept.pop_front();
  begins_.push_back({set, now_ns});
  if (begins_.size() > kBeginsKept) begins_.pop_front();
}

void SetRhythm::forget(uint64_t set) {
  steps_.erase(set);
  std::erase_if(begins_, [set](const Begin& begin) { return begin.set == set; });
}

std::vector<PlanReport::Beside> SetRhythm::beside(uint64_t set) const {
  std::vector<PlanReport::Beside> result;
  const auto steps = steps_.find(set);
  if (steps == steps_.end()) return result;
  std::map<uint64_t, std::vector<uint64_t>> before;
  for (const std::vector<Before>& step : steps->second.kept) {
    for (const Before& one : step) {
      if (steps_.contains(one.set)) before[one.set].push_back(one.before_ns);
    }
  }
  for (auto& [other, times] : before) {
    const auto middle = times.begin() + static_cast<int64_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    const double share =
        static_cast<double>(times.size()) / static_cast<double>(steps->second.kept.size());
    result.push_back({other, *middle, share});
  }
  std::ranges::stable_sort(result, std::ranges::greater(), &PlanReport::Beside::share);
  if (result.size() > PlanReport::kBesideMax) result.resize(PlanReport::kBesideMax);
  return result;
}

}  // namespace braid
