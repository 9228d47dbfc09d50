// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "planner/cost_model.h"
#include "planner/kfac_simulator.h"
#include "planner/kfac_step.h"

namespace braid {

// How ranks divide a step of K-FAC: methods of papers, and ours.
//
//   d-kfac      factors are averaged after the passes, and everybody inverts all
//   mpd-kfac    the same, but inverses go around: item i to rank i mod ranks. Both as SPD-KFAC
//               describes them
//   pipeline    d-kfac, but factors are averaged in the passes, merged by spd_factor_plan()
//   balance     d-kfac, but inverses are placed by the rule lbp (placement_rules.h)
//   spd-kfac    both: SPD-KFAC as its code has it. Shi, Zhang, Li, "Accelerating Distributed K-FAC
//               with Smart Parallelism of Computing and Communication Tasks" (ICDCS 2021)
//   spd-kfac:t  the same with the rule lbp:t, the paper's test by times
//   braid       ours: factors and gradients are planned jointly (plan_jointly), inverses are placed
//               by place()'s best, and begin one by one. Or any schedule of the methods above, with
//               or without these changes, if that ends earlier
//
// Gradients are merged by mgwfbp where they are not planned jointly. By construction braid is never
// worse than another method.
struct KfacMethod {
  std::string_view name;
  std::string_view description;
};
std::span<const KfacMethod> kfac_methods();

struct KfacResult {
  KfacSchedule schedule;
  KfacTimes times;
  std::string chosen;  // of braid: what the schedule is made of
};
// INVALID_ARGUMENT: no method is called `method` (the error lists them), or no rank, or too many.
Result<KfacResult> simulate_kfac_method(const KfacStep& step, const KfacLink& link,
                                        std::string_view method);

// SPD-KFAC's rule for the factors of one stream, as its code has it: MG-WFBP's (mgwfbp), as if the
// stream had the link to itself. But a factor that is sent alone is taken to cost what the whole
// matrix would, although it travels as a triangle, too. `square_bytes`: of the stream's tensors.
Plan spd_factor_plan(const Workload& stream, std::span<const uint64_t> square_bytes,
                     const CostModel& cost);

}  // namespace braid
