// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "planner/all_planners.h"
#include "planner/exact_windows.h"
#include "planner/fewest_groups.h"

namespace braid {
namespace {

std::vector<uint64_t> bytes_of_prefixes(const Workload& workload) {
  std::vector<uint64_t> bytes = {0};
  bytes.reserve(workload.tensors.size() + 1);
  for (const Workload::Tensor& tensor : workload.tensors) {
    bytes.push_back(bytes.back() + tensor.bytes);
  }
  return bytes;
}

// f of the planner's note, for all prefixes.
template <typename Window>
std::vector<Prefix> earliest_ends(const Workload& workload, const std::vector<uint64_t>& bytes,
                                  Window window) {
  std::vector<Prefix> prefixes = {Prefix{}};
  prefixes.reserve(bytes.size());
  window.look_at(prefixes);
  for (uint32_t tensors = 1; tensors < bytes.size(); ++tensors) {
    window.show_next();
    const double ready = workload.tensors[tensors - 1].ready_seconds;
    const Continuation best = window.best(ready, bytes[tensors]);
    const uint32_t groups = prefixes[best.place].groups + 1;
    prefixes.push_back({tensors, groups, bytes[tensors], best.end_seconds, best.place});
  }
  return prefixes;
}

// [i]: the least that it takes to send all but the first i tensors, if nothing else has to be
// waited for. That is f of the tensors in reverse, all ready at once.
template <typename Window>
std::vector<double> rest_seconds(const Workload& workload, const Window& window) {
  Workload reverse;
  reverse.tensors.reserve(workload.tensors.size());
  for (auto tensor = workload.tensors.rbegin(); tensor != workload.tensors.rend(); ++tensor) {
    reverse.tensors.push_back({0, tensor->bytes});
  }
  const std::vector<Prefix> prefixes = earliest_ends(reverse, bytes_of_prefixes(reverse), window);
  std::vector<double> seconds;
  seconds.reserve(prefixes.size());
  for (auto prefix = prefixes.rbegin(); prefix != prefixes.rend(); ++prefix) {
    seconds.push_back(prefix->end_seconds);
  }
  return seconds;
}

std::vector<uint32_t> group_ends(const std::vector<Prefix>& prefixes) {
  std::vector<uint32_t> ends;
  for (auto place = static_cast<uint32_t>(prefixes.size() - 1); place != 0;
       place = prefixes[place].before) {
    ends.push_back(place);
  }
  return ends;
}

// `ends` from the last group's to the first one's.
Plan plan_of(const std::vector<uint32_t>& ends) {
  Plan plan;
  plan.groups.reserve(ends.size());
  uint32_t begin = 0;
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    plan.groups.push_back({begin, *end});
    begin = *end;
  }
  return plan;
}

template <typename Window>
Plan optimum(const Workload& workload, const Window& window, bool fewest) {
  if (workload.tensors.empty()) return {};
  const std::vector<uint64_t> bytes = bytes_of_prefixes(workload);
  const std::vector<Prefix> prefixes = earliest_ends(workload, bytes, window);
  std::vector<uint32_t> ends;
  if (fewest) {
    const Prefix& all = prefixes.back();
    const std::vector<double> rest = rest_seconds(workload, window);
    ends = FewestGroups(workload, bytes, window, all.end_seconds, rest).find(all.groups);
  }
  return plan_of(ends.empty() ? group_ends(prefixes) : ends);
}

// The best plan for one stream. With f(j) = when the first j tensors can be through:
//     f(j) = min over i < j of [ max(f(i), ready(j)) + T(bytes of the tensors i + 1 … j) ],  f(0) =
//     0
// Groups of neighbours, in ready order, lose nothing; f never decreases, as more tensors are never
// through earlier. So of all i with f(i) ≤ ready(j) the last one is the best, and where
// T = a + b·M the others compare by f(i) − b·(bytes up to i), whatever j is. Where T consists of
// several such lines, those compare so whose last group is of one line's sizes. See
// exact_windows.h.
class ExactPlanner final : public Planner {
 public:
  Plan plan(const Workload& workload, const CostModel& cost,
            const PlannerOptions& options) const override {
    if (auto lines = cost.lines(); !lines.empty()) {
      return optimum(workload, LinesWindow(std::move(lines)), options.fewest_groups);
    }
    return optimum(workload, MonotoneWindow(cost), options.fewest_groups);
  }
  std::string_view name() const override { return "exact"; }
  std::string_view description() const override {
    return "the shortest iteration of all plans for one stream, by dynamic programming; of these "
           "the one with the fewest groups";
  }
};

}  // namespace

const Planner& exact_planner() {
  static const ExactPlanner planner;
  return planner;
}

}  // namespace braid
