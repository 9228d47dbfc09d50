// SPDX-License-Identifier: Apache-2.0
#include "planner/all_planners.h"
#include "planner/greedy_merge.h"

namespace braid {
namespace {

// Greedy: it is not optimal, although the paper proves that it is. The proof compares when the next
// tensor alone would be done, but that one may be merged too, and then pays for the delay again.
//
// Where the cost is not linear, the saved startup is that of the message in question.
class MgwfbpPlanner final : public Planner {
 public:
  Plan plan(const Workload& workload, const CostModel& cost,
            const PlannerOptions& /*options*/) const override {
    return greedy_merge(workload, cost, [](const MergeQuestion& question) {
      return question.next_ready_seconds - question.start_seconds < question.startup_seconds;
    });
  }
  std::string_view name() const override { return "mgwfbp"; }
  std::string_view description() const override {
    return "merges a tensor with the next one if that is ready before a startup would be over "
           "(MG-WFBP: Shi et al., arXiv 1912.09268, algorithm 1)";
  }
};

}  // namespace

const Planner& mgwfbp_planner() {
  static const MgwfbpPlanner planner;
  return planner;
}

}  // namespace braid
