// SPDX-License-Identifier: Apache-2.0
#include "planner/all_planners.h"
#include "planner/greedy_merge.h"

namespace braid {
namespace {

// Merges only what would wait for the network anyway, so that no message is sent later than it
// could be: the paper leaves the rest to simultaneous communications.
class AscPlanner final : public Planner {
 public:
  Plan plan(const Workload& workload, const CostModel& cost,
            const PlannerOptions& /*options*/) const override {
    return greedy_merge(workload, cost, [](const MergeQuestion& question) {
      return question.start_seconds > question.next_ready_seconds;
    });
  }
  std::string_view name() const override { return "asc"; }
  std::string_view description() const override {
    return "merges a tensor with the next one if the network is busy until that is ready "
           "(ASC-WFBP: Shi et al., INFOCOM 2021)";
  }
};

}  // namespace

const Planner& asc_planner() {
  static const AscPlanner planner;
  return planner;
}

}  // namespace braid
