// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "planner/cost_model.h"
#include "planner/plan.h"
#include "planner/workload.h"

namespace braid {

// Options of all planners; each reads those that it knows.
struct PlannerOptions {
  uint32_t streams = 1;                   // groups in flight at once: streams
  uint64_t bucket_bytes = 25 << 20;       // ddp: a bucket that holds it is closed
  uint64_t first_bucket_bytes = 1 << 20;  // ddp: the first one already when it holds this
  uint64_t fusion_bytes = 128 << 20;      // horovod: its fusion buffer
  double cycle_seconds = 1e-3;            // horovod: how often it looks for ready tensors
  uint64_t small_tensor_elements = 8192;  // dear: fewer are merged in any case
  uint64_t piece_bytes_min = 256 << 10;   // streams: no piece of a split group is smaller
  // exact, streams: which one of equally good plans. The one with the fewest groups: least work per
  // step, but its groups are as large as they may be if everything takes as long as was said. Or
  // the one whose groups are all through as early as possible, which stays good when the network
  // gets slower.
  bool fewest_groups = true;
};

// Decides what to merge and what to split. Pure: the same input gives the same plan. Any thread.
//
// What it takes is bounded by counts of tensors, lines of the cost and simulated units, never by a
// clock: with eight bands a millisecond or a few for a thousand tensors, for 100,000 less than a
// second, and for streams some tens of milliseconds and less than two seconds. Only of a cost that
// does not say its lines (CostModel::lines) exact's part grows with the square of the tensors.
class Planner {
 public:
  virtual ~Planner() = default;
  // A workload without tensors gives a plan without groups.
  virtual Plan plan(const Workload& workload, const CostModel& cost,
                    const PlannerOptions& options) const = 0;
  virtual std::string_view name() const = 0;         // as --planner takes it
  virtual std::string_view description() const = 0;  // one line, with its source
};

// All planners, in the order in which documents list them: wfbp, single, mgwfbp, exact, streams,
// asc, dear, ddp, horovod.
std::span<const Planner* const> planners();
// An unknown name's error lists the known ones.
Result<const Planner*> find_planner(std::string_view name);

}  // namespace braid
