// SPDX-License-Identifier: Apache-2.0
#include "planner/all_planners.h"

namespace braid {
namespace {

class SinglePlanner final : public Planner {
 public:
  Plan plan(const Workload& workload, const CostModel& /*cost*/,
            const PlannerOptions& /*options*/) const override {
    if (workload.tensors.empty()) return {};
    return {{{0, static_cast<uint32_t>(workload.tensors.size())}}};
  }
  std::string_view name() const override { return "single"; }
  std::string_view description() const override {
    return "all tensors in one message after backward (SyncEASGD: You et al., SC 2017)";
  }
};

}  // namespace

const Planner& single_planner() {
  static const SinglePlanner planner;
  return planner;
}

}  // namespace braid
