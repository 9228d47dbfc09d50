// SPDX-License-Identifier: Apache-2.0
#include "plan/all_planners.h"

namespace braid {
namespace {

class StreamsPlanner final : public Planner {
 public:
  Plan plan(const Workload& workload, const CostModel& cost,
            const PlannerOptions& options) const override {
    return exact_planner().plan(workload, cost, options);
  }
  std::string_view name() const override { return "streams"; }
  std::string_view description() const override { return "for several streams at once"; }
};

}  // namespace

const Planner& streams_planner() {
  static const StreamsPlanner planner;
  return planner;
}

}  // namespace braid
