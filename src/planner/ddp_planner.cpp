// SPDX-License-Identifier: Apache-2.0
#include "planner/all_planners.h"

namespace braid {
namespace {

// As compute_bucket_assignment_by_size in torch/csrc/distributed/c10d/reducer.cpp does once the
// order of the gradients is known (from the second step on): a bucket is closed as soon as it holds
// its limit, so the tensor that fills it may carry it beyond.
class DdpPlanner final : public Planner {
 public:
  Plan plan(const Workload& workload, const CostModel& /*cost*/,
            const PlannerOptions& options) const override {
    Plan plan;
    const auto tensors = static_cast<uint32_t>(workload.tensors.size());
    uint32_t begin = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < tensors; ++i) {
      bytes += workload.tensors[i].bytes;
      const uint64_t limit = begin == 0 ? options.first_bucket_bytes : options.bucket_bytes;
      if (bytes < limit && i + 1 < tensors) continue;
      plan.groups.push_back({begin, i + 1});
      begin = i + 1;
      bytes = 0;
    }
    return plan;
  }
  std::string_view name() const override { return "ddp"; }
  std::string_view description() const override {
    return "buckets of a fixed size, the first one smaller "
           "(PyTorch DistributedDataParallel: Li et al., VLDB 2020)";
  }
};

}  // namespace

const Planner& ddp_planner() {
  static const DdpPlanner planner;
  return planner;
}

}  // namespace braid
