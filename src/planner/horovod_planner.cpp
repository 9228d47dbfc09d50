// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "planner/all_planners.h"

namespace braid {
namespace {

// The background thread as Horovod runs it (horovod/common/operations.cc, RunLoopOnce): it wakes up
// once a cycle, or later if it was busy, fuses what is ready, and reduces one buffer after the
// other. A tensor that does not fit the buffer goes alone. The plan keeps what was fused; the
// simulator does not make it wait for the cycle.
class HorovodPlanner final : public Planner {
 public:
  Plan plan(const Workload& workload, const CostModel& cost,
            const PlannerOptions& options) const override {
    Plan plan;
    const auto tensors = static_cast<uint32_t>(workload.tensors.size());
    double cycle = 0;
    uint32_t begin = 0;
    while (begin < tensors) {
      cycle = cycle_that_finds(workload.tensors[begin].ready_seconds, cycle, options.cycle_seconds);
      double idle = cycle;
      while (begin < tensors && workload.tensors[begin].ready_seconds <= cycle) {
        const Fused fused = fuse(workload, begin, cycle, options.fusion_bytes);
        plan.groups.push_back({begin, fused.end});
        idle += cost.seconds(fused.bytes);
        begin = fused.end;
      }
      cycle = std::max(cycle + options.cycle_seconds, idle);
    }
    return plan;
  }
  std::string_view name() const override { return "horovod"; }
  std::string_view description() const override {
    return "every cycle what is ready, up to a buffer full (Horovod tensor fusion: Sergeev and "
           "Del Balso, arXiv 1802.05799)";
  }

 private:
  struct Fused {
    uint32_t end = 0;
    uint64_t bytes = 0;
  };

  // The first cycle from `cycle` on that comes no earlier than `ready`.
  static double cycle_that_finds(double ready, double cycle, double cycle_seconds) {
    if (ready <= cycle) return cycle;
    if (cycle_seconds <= 0) return ready;
    // Rounding must not let it miss the tensor, or it would never end.
    return std::max(ready, cycle + std::ceil((ready - cycle) / cycle_seconds) * cycle_seconds);
  }

  static Fused fuse(const Workload& workload, uint32_t begin, double cycle, uint64_t fusion_bytes) {
    Fused fused{begin + 1, workload.tensors[begin].bytes};
    while (fused.end < workload.tensors.size()) {
      const Workload::Tensor& next = workload.tensors[fused.end];
      if (next.ready_seconds > cycle || fused.bytes + next.bytes > fusion_bytes) break;
      fused.bytes += next.bytes;
      ++fused.end;
    }
    return fused;
  }
};

}  // namespace

const Planner& horovod_planner() {
  static const HorovodPlanner planner;
  return planner;
}

}  // namespace braid
