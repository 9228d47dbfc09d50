// SPDX-License-Identifier: Apache-2.0
#include "planner/all_planners.h"
#include "planner/greedy_merge.h"

namespace braid {
namespace {

// Workloads know bytes alone: elements are taken to have four.
constexpr uint64_t kElementBytes = 4;

class DearPlanner final : public Planner {
 public:
  Plan plan(const Workload& workload, const CostModel& cost,
            const PlannerOptions& options) const override {
    const uint64_t small_elements = options.small_tensor_elements;
    return greedy_merge(workload, cost, [small_elements](const MergeQuestion& question) {
      return question.next_ready_seconds - question.start_seconds < question.startup_seconds ||
             question.bytes / kElementBytes < small_elements;
    });
  }
  std::string_view name() const override { return "dear"; }
  std::string_view description() const override {
    return "as mgwfbp, and messages of few elements are merged in any case "
           "(DeAR: Zhang et al., ICDCS 2023)";
  }
};

}  // namespace

const Planner& dear_planner() {
  static const DearPlanner planner;
  return planner;
}

}  // namespace braid
