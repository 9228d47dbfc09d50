// SPDX-License-Identifier: Apache-2.0
#include "planner/sharded_step.h"

#include <algorithm>

#include "base/assert.h"
#include "planner/channels.h"
#include "planner/pieces.h"

namespace braid {
namespace {

// Starts the groups' units, those that the forward pass needs first before the others. It needs the
// group first that backward made last; so what waits is a stack.
class UrgentUnits {
 public:
  UrgentUnits(const Workload& workload, const Plan& plan, const CostModel& cost, Timeline& timeline)
      : workload_(workload), plan_(plan), cost_(cost), timeline_(timeline) {}

  void run(uint32_t streams) {
    uint64_t units = 0;
    for (const Plan::Group& group : plan_.groups) units += group.pieces;
    timeline_.units.reserve(units);
    const std::vector<double> slowdown = slowdowns(cost_, streams, units);
    Channels channels(slowdown);
    std::vector<Channels::End> ends;
    while (timeline_.units.size() < units) {
      double seconds = channels.free_seconds(ends);
      if (waiting_.empty()) seconds = std::max(seconds, ready_seconds(next_));
      while (next_ < plan_.groups.size() && ready_seconds(next_) <= seconds) add_next();
      const auto unit = static_cast<uint32_t>(timeline_.units.size());
      const CostModel::Phases phases = take_most_urgent();
      timeline_.units.back().start_seconds = channels.start(unit, seconds, phases, ends);
    }
    channels.finish(ends);
    for (const Channels::End& end : ends) timeline_.units[end.unit].end_seconds = end.seconds;
  }

 private:
  struct Waiting {
    uint32_t group = 0;
    uint64_t bytes = 0;
    uint32_t started = 0;  // pieces
  };

  double ready_seconds(uint32_t group) const {
    return timeline_.ready_seconds[plan_.groups[group].end - 1];
  }

  void add_next() {
    const Plan::Group& members = plan_.groups[next_];
    Waiting waiting{next_++};
    for (uint32_t i = members.begin; i < members.end; ++i) {
      waiting.bytes += workload_.tensors[i].bytes;
    }
    waiting_.push_back(waiting);
  }

  CostModel::Phases take_most_urgent() {
    Waiting& most_urgent = waiting_.back();
    const uint32_t pieces = plan_.groups[most_urgent.group].pieces;
    const uint32_t piece = most_urgent.started++;
    timeline_.units.push_back({most_urgent.group, piece, 0, 0});
    const CostModel::Phases phases = cost_.phases(piece_bytes(most_urgent.bytes, pieces, piece));
    if (most_urgent.started == pieces) waiting_.pop_back();
    return phases;
  }

  const Workload& workload_;
  const Plan& plan_;
  const CostModel& cost_;
  Timeline& timeline_;
  uint32_t next_ = 0;  // group that is not ready yet
  std::vector<Waiting> waiting_;
};

// The forward pass of the first layer that the group belongs to, and of all layers after that one.
double forward_left_seconds(const Workload& workload, const Plan::Group& group) {
  const double backward = workload.backward_seconds();
  const double share =
      backward > 0 ? workload.tensors[group.end - 1].ready_seconds / backward
                   : static_cast<double>(group.end) / static_cast<double>(workload.tensors.size());
  return workload.forward_seconds * share;
}

}  // namespace

Timeline simulate_sharded(const Workload& workload, const Plan& plan, const CostModel& cost,
                          const SimulatorOptions& options) {
  BRAID_ASSERT(check_plan(plan, workload.tensors.size()).is_ok(),
               "a simulated plan covers its workload");
  Timeline timeline;
  timeline.ready_seconds = slowest_ready_seconds(workload, options);
  if (!timeline.ready_seconds.empty()) timeline.backward_seconds = timeline.ready_seconds.back();
  UrgentUnits(workload, plan, cost, timeline).run(options.streams);
  // Whatever the forward pass waits for last, from there on it goes through without a break.
  const double compute_seconds = workload.forward_seconds + timeline.backward_seconds;
  timeline.iteration_seconds = compute_seconds;
  for (const Timeline::Unit& unit : timeline.units) {
    const double left = forward_left_seconds(workload, plan.groups[unit.group]);
    timeline.iteration_seconds = std::max(timeline.iteration_seconds, unit.end_seconds + left);
  }
  timeline.exposed_seconds = timeline.iteration_seconds - compute_seconds;
  return timeline;
}

}  // namespace braid
