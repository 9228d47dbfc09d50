// SPDX-License-Identifier: Apache-2.0
#include "planner/joint_plan.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "planner/all_planners.h"
#include "planner/joint_table.h"

namespace braid {
namespace {

// How many groups the search may play, all of its changes together.
constexpr uint64_t kGroupsPlayedMax = 1'000'000;

// Plays joint plans, and changes one for the better: two groups become one, one becomes two, or a
// tensor goes from a group to its neighbour. It ends when no change helps.
class JointSearch {
 public:
  JointSearch(std::span<const Workload> streams, const CostModel& cost)
      : streams_(streams), cost_(cost), bytes_(streams.size()), sent_(streams.size()) {
    for (size_t i = 0; i < streams.size(); ++i) {
      bytes_[i].push_back(0);
      for (const Workload::Tensor& tensor : streams[i].tensors) {
        bytes_[i].push_back(bytes_[i].back() + tensor.bytes);
      }
    }
  }

  double end_seconds(std::span<const Plan> plans) {
    std::ranges::fill(sent_, 0);
    double end = 0;
    for (;;) {
      size_t next = streams_.size();
      double next_ready = 0;
      for (size_t i = 0; i < streams_.size(); ++i) {
        if (sent_[i] == plans[i].groups.size()) continue;
        const double ready = streams_[i].tensors[plans[i].groups[sent_[i]].end - 1].ready_seconds;
        if (next < streams_.size() && ready >= next_ready) continue;
        next = i;
        next_ready = ready;
      }
      if (next == streams_.size()) return end;
      const Plan::Group& group = plans[next].groups[sent_[next]++];
      end = std::max(end, next_ready) +
            cost_.seconds(bytes_[next][group.end] - bytes_[next][group.begin]);
      ++played_;
    }
  }

  void improve(JointPlan& plan) {
    bool is_better = true;
    while (is_better && played_ < kGroupsPlayedMax) {
      is_better = false;
      for (size_t stream = 0; stream < streams_.size(); ++stream) {
        for (size_t group = 0; group < plan.plans[stream].groups.size(); ++group) {
          is_better = improve_group(plan, stream, group) || is_better;
          if (played_ >= kGroupsPlayedMax) return;
        }
      }
    }
  }

 private:
  bool improve_group(JointPlan& plan, size_t stream, size_t index) {
    const Plan::Group group = plan.plans[stream].groups[index];
    if (group.end - group.begin > 1) {
      const uint32_t middle = group.begin + (group.end - group.begin) / 2;
      if (change(plan, stream, index, 1, {{group.begin, middle}, {middle, group.end}})) return true;
    }
    if (index + 1 == plan.plans[stream].groups.size()) return false;
    const Plan::Group next = plan.plans[stream].groups[index + 1];
    if (change(plan, stream, index, 2, {{group.begin, next.end}})) return true;
    for (const uint32_t border : {group.end - 1, group.end + 1}) {
      if (border == group.begin || border == next.end) continue;
      if (change(plan, stream, index, 2, {{group.begin, border}, {border, next.end}})) return true;
    }
    return false;
  }

  // Keeps the plan as it was, unless it ends earlier with `instead` of some groups.
  bool change(JointPlan& plan, size_t stream, size_t first, size_t removed,
              std::initializer_list<Plan::Group> instead) {
    std::vector<Plan::Group>& groups = plan.plans[stream].groups;
    std::vector<Plan::Group> before = groups;
    const auto at = groups.begin() + static_cast<std::ptrdiff_t>(first);
    groups.insert(groups.erase(at, at + static_cast<std::ptrdiff_t>(removed)), instead);
    const double end = end_seconds(plan.plans);
    if (end < plan.end_seconds) {
      plan.end_seconds = end;
      return true;
    }
    groups = std::move(before);
    return false;
  }

  std::span<const Workload> streams_;
  const CostModel& cost_;
  std::vector<std::vector<uint64_t>> bytes_;  // of each stream's first i tensors
  std::vector<size_t> sent_;                  // groups of each stream, while plans are played
  uint64_t played_ = 0;                       // groups
};

}  // namespace

double joint_end_seconds(std::span<const Workload> streams, std::span<const Plan> plans,
                         const CostModel& cost) {
  BRAID_ASSERT(streams.size() == plans.size(), "each stream has a plan");
  return JointSearch(streams, cost).end_seconds(plans);
}

JointPlan plan_jointly(std::span<const Workload> streams, const CostModel& cost,
                       const PlannerOptions& options) {
  JointSearch search(streams, cost);
  const auto one_by_one = [&](const Planner& planner) {
    JointPlan plan;
    for (const Workload& stream : streams) {
      plan.plans.push_back(planner.plan(stream, cost, options));
    }
    plan.end_seconds = search.end_seconds(plan.plans);
    return plan;
  };
  JointPlan best = one_by_one(exact_planner());
  const auto has_tensors = [](const Workload& stream) { return !stream.tensors.empty(); };
  if (std::ranges::count_if(streams, has_tensors) < 2) return best;
  for (const Planner* planner : {&mgwfbp_planner(), &wfbp_planner(), &single_planner()}) {
    JointPlan plan = one_by_one(*planner);
    if (plan.end_seconds < best.end_seconds) best = std::move(plan);
  }
  JointTable table(streams, cost);
  JointPlan joint{table.plans(), 0};
  joint.end_seconds = search.end_seconds(joint.plans);
  if (table.is_exact()) return joint.end_seconds <= best.end_seconds ? joint : best;
  if (joint.end_seconds < best.end_seconds) best = std::move(joint);
  search.improve(best);
  return best;
}

}  // namespace braid
