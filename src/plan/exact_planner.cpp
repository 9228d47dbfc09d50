// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "plan/all_planners.h"
#include "plan/exact_windows.h"

namespace braid {
namespace {

// How many steps the search for the fewest groups may take, for all and per tensor: it is complete
// for hundreds of groups and never takes longer than a millisecond per thousand tensors. Beyond,
// the plan is still optimal, but some other one may do it with fewer groups.
constexpr uint64_t kStepsMax = 1 << 17;
constexpr uint64_t kStepsMaxPerTensor = 32;

std::vector<uint64_t> bytes_of_prefixes(const Workload& workload) {
  std::vector<uint64_t> bytes = {0};
  bytes.reserve(workload.tensors.size() + 1);
  for (const Workload::Tensor& tensor : workload.tensors) {
    bytes.push_back(bytes.back() + tensor.bytes);
  }
  return bytes;
}

// f of the notes below, for all prefixes; `before` is the prefix's place in the list.
template <typename Window>
std::vector<Prefix> earliest_ends(const Workload& workload, const std::vector<uint64_t>& bytes,
                                  Window window) {
  std::vector<Prefix> prefixes = {Prefix{}};
  prefixes.reserve(bytes.size());
  for (uint32_t tensors = 1; tensors < bytes.size(); ++tensors) {
    window.add(prefixes.back());
    const Continuation best =
        window.best(workload.tensors[tensors - 1].ready_seconds, bytes[tensors]);
    prefixes.push_back(
        {tensors, prefixes[best.place].groups + 1, bytes[tensors], best.end_seconds, best.place});
  }
  return prefixes;
}

// Fewer groups may do, if an early group ends later than it could but nobody has to wait for it:
// f alone does not see that. So the prefixes are reached in one group, then in two, and so on,
// until all tensors are through at the optimum. Only those that end earlier than with fewer groups
// go into the next round.
template <typename Window>
class FewestGroups {
 public:
  FewestGroups(const Workload& workload, const std::vector<uint64_t>& bytes, Window empty)
      : workload_(workload), bytes_(bytes), empty_(std::move(empty)) {}

  // The groups' ends; none if no fewer than `groups_max` groups were found.
  std::vector<uint32_t> find(double optimum, uint32_t groups_max) {
    earliest_.assign(bytes_.size(), std::numeric_limits<double>::infinity());
    earliest_[0] = 0;
    rounds_ = {{Prefix{}}};
    while (rounds_.size() < groups_max && !rounds_.back().empty() && steps_left() > 0) {
      rounds_.push_back(next_round(optimum));
      const std::vector<Prefix>& reached = rounds_.back();
      if (!reached.empty() && reached.back().tensors + 1 == bytes_.size()) return ends();
    }
    return {};
  }

 private:
  uint64_t steps_left() const {
    const uint64_t most = std::max<uint64_t>(kStepsMax, kStepsMaxPerTensor * bytes_.size());
    return most - std::min(steps_, most);
  }

  // Those that one more group reaches earlier than `earliest_`, and by the optimum.
  std::vector<Prefix> next_round(double optimum) {
    const std::vector<Prefix>& from = rounds_.back();
    std::vector<Prefix> reached;
    Window window = empty_;
    size_t added = 0;
    for (uint32_t tensors = from.front().tensors + 1; tensors < bytes_.size(); ++tensors) {
      while (added < from.size() && from[added].tensors < tensors) window.add(from[added++]);
      steps_ += window.steps();
      const Continuation best =
          window.best(workload_.tensors[tensors - 1].ready_seconds, bytes_[tensors]);
      if (best.end_seconds > optimum) {
        if (added == from.size()) break;  // nor will longer groups end by then
        continue;
      }
      if (best.end_seconds >= earliest_[tensors]) continue;
      earliest_[tensors] = best.end_seconds;
      reached.push_back(
          {tensors, from[best.place].groups + 1, bytes_[tensors], best.end_seconds, best.place});
    }
    return reached;
  }

  std::vector<uint32_t> ends() const {
    std::vector<uint32_t> ends;
    auto place = static_cast<uint32_t>(rounds_.back().size() - 1);
    for (size_t round = rounds_.size() - 1; round > 0; --round) {
      ends.push_back(rounds_[round][place].tensors);
      place = rounds_[round][place].before;
    }
    return ends;
  }

  const Workload& workload_;
  const std::vector<uint64_t>& bytes_;
  const Window empty_;
  std::vector<double> earliest_;             // end of each prefix, with the groups so far
  std::vector<std::vector<Prefix>> rounds_;  // [n]: reached with n groups
  uint64_t steps_ = 0;
};

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
Plan optimum(const Workload& workload, const Window& empty) {
  if (workload.tensors.empty()) return {};
  const std::vector<uint64_t> bytes = bytes_of_prefixes(workload);
  const std::vector<Prefix> prefixes = earliest_ends(workload, bytes, empty);
  const Prefix& all = prefixes.back();
  std::vector<uint32_t> ends =
      FewestGroups<Window>(workload, bytes, empty).find(all.end_seconds, all.groups);
  if (!ends.empty()) return plan_of(ends);
  for (auto place = static_cast<uint32_t>(prefixes.size() - 1); place != 0;
       place = prefixes[place].before) {
    ends.push_back(place);
  }
  return plan_of(ends);
}

// The best plan for one stream. With f(j) = when the first j tensors can be through:
//     f(j) = min over i < j of [ max(f(i), ready(j)) + T(bytes of the tensors i + 1 … j) ],  f(0) =
//     0
// Groups of neighbours, in ready order, lose nothing; f never decreases, as more tensors are never
// through earlier. So of all i with f(i) ≤ ready(j) the last one is the best, and where
// T = a + b·M the others compare by f(i) − b·(bytes up to i), whatever j is: see exact_windows.h.
class ExactPlanner final : public Planner {
 public:
  Plan plan(const Workload& workload, const CostModel& cost,
            const PlannerOptions& /*options*/) const override {
    if (const auto linear = cost.linear()) return optimum(workload, LinearWindow(*linear));
    return optimum(workload, MonotoneWindow(cost));
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
