// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "planner/cost_model.h"
#include "planner/plan.h"
#include "planner/planner.h"
#include "planner/workload.h"

// Joint planning: several streams of tensors share one link, such as a model's gradients and the
// Kronecker factors of its layers. Each stream has a plan of its own, since groups never mix
// streams. But what one stream sends, the others wait for. So plans that are made one by one, as if
// each had the link to itself, fight for it.
//
// The ready times of all streams count from the same moment. Workload::forward_seconds is not used.
namespace braid {

struct JointPlan {
  std::vector<Plan> plans;  // one per stream
  double end_seconds = 0;   // joint_end_seconds() of them
};

// When the link has sent all groups of all streams: one at a time, in the order in which they are
// ready. No other order ends earlier. Each plan covers its stream.
double joint_end_seconds(std::span<const Workload> streams, std::span<const Plan> plans,
                         const CostModel& cost);

// Plans that end as early as possible. Pure: the same input gives the same plans. Any thread.
//
// Exact where the products of the streams' tensors, each plus one, are at most 65,536. Otherwise
// neighbours are joined until that holds, and the plan is then improved tensor by tensor. Never
// worse than what exact, mgwfbp, wfbp or single make of the streams one by one. What it takes is
// bounded by counts, never by a clock: some tens of milliseconds.
JointPlan plan_jointly(std::span<const Workload> streams, const CostModel& cost,
                       const PlannerOptions& options = {});

}  // namespace braid
