// SPDX-License-Identifier: Apache-2.0
#include "planner/all_planners.h"

namespace braid {
namespace {

class WfbpPlanner final : public Planner {
 public:
  Plan plan(const Workload& workload, const CostModel& /*cost*/,
            const PlannerOptions& /*options*/) const override {
    Plan plan;
    const auto tensors = static_cast<uint32_t>(workload.tensors.size());
    plan.groups.reserve(tensors);
    for (uint32_t i = 0; i < tensors; ++i) plan.groups.push_back({i, i + 1});
    return plan;
  }
  std::string_view name() const override { return "wfbp"; }
  std::string_view description() const override {
    return "each tensor alone, as soon as it is ready (wait-free backpropagation: Poseidon, "
           "USENIX ATC 2017)";
  }
};

}  // namespace

const Planner& wfbp_planner() {
  static const WfbpPlanner planner;
  return planner;
}

}  // namespace braid
