// SPDX-License-Identifier: Apache-2.0
#include "planner/simulator.h"

#include <algorithm>

#include "base/assert.h"
#include "base/hash.h"
#include "planner/beside_units.h"
#include "planner/channels.h"
#include "planner/pieces.h"

namespace braid {
namespace {

// splitmix64 (Steele et al., OOPSLA 2014): the same numbers on every platform, which the
// distributions of <random> do not promise.
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  double uniform(double low, double high) {
    state_ += 0x9e3779b97f4a7c15ULL;
    const double unit = static_cast<double>(mix64(state_) >> 11) * 0x1p-53;  // in [0, 1)
    return low + (high - low) * unit;
  }

 private:
  uint64_t state_;
};

std::vector<double> ready_alike(const Workload& workload) {
  std::vector<double> ready;
  ready.reserve(workload.tensors.size());
  for (const Workload::Tensor& tensor : workload.tensors) ready.push_back(tensor.ready_seconds);
  return ready;
}

// Returns when the last unit ended.
double run_units(const Workload& workload, const Plan& plan, const CostModel& cost,
                 uint32_t streams, Timeline& timeline) {
  uint64_t units = 0;
  for (const Plan::Group& group : plan.groups) units += group.pieces;
  timeline.units.reserve(units);
  const std::vector<double> slowdown = slowdowns(cost, streams, units + workload.beside.size());
  Channels channels(slowdown);
  BesideUnits beside(workload, cost);
  std::vector<Channels::End> ends;
  for (uint32_t group = 0; group < plan.groups.size(); ++group) {
    const Plan::Group& members = plan.groups[group];
    uint64_t bytes = 0;
    for (uint32_t i = members.begin; i < members.end; ++i) bytes += workload.tensors[i].bytes;
    const double ready = timeline.ready_seconds[members.end - 1];
    beside.start_until(ready, channels, ends);
    for (uint32_t piece = 0; piece < members.pieces; ++piece) {
      const auto unit = static_cast<uint32_t>(timeline.units.size());
      const CostModel::Phases phases = cost.phases(piece_bytes(bytes, members.pieces, piece));
      timeline.units.push_back({group, piece, channels.start(unit, ready, phases, ends), 0});
    }
  }
  beside.start_all(channels, ends);
  const double last_end = channels.finish(ends);
  for (const Channels::End& end : ends) {
    if (end.unit != BesideUnits::kUnit) timeline.units[end.unit].end_seconds = end.seconds;
  }
  return last_end;
}

}  // namespace

std::vector<double> slowest_ready_seconds(const Workload& workload,
                                          const SimulatorOptions& options) {
  if (options.straggle == 0 && options.jitter == 0) return ready_alike(workload);
  std::vector<double> slowest(workload.tensors.size());
  SplitMix random(options.seed);
  for (uint32_t worker = 0; worker < std::max(options.workers, 1u); ++worker) {
    const double pace = random.uniform(1, 1 + options.straggle);
    double previous = 0;
    double ready = 0;
    for (size_t i = 0; i < slowest.size(); ++i) {
      const double tensor = workload.tensors[i].ready_seconds;
      ready += (tensor - previous) * pace * random.uniform(1 - options.jitter, 1 + options.jitter);
      previous = tensor;
      slowest[i] = std::max(slowest[i], ready);
    }
  }
  return slowest;
}

Timeline simulate(const Workload& workload, const Plan& plan, const CostModel& cost,
                  const SimulatorOptions& options) {
  BRAID_ASSERT(check_plan(plan, workload.tensors.size()).is_ok(),
               "a simulated plan covers its workload");
  Timeline timeline;
  timeline.ready_seconds = slowest_ready_seconds(workload, options);
  if (!timeline.ready_seconds.empty()) timeline.backward_seconds = timeline.ready_seconds.back();
  const double end = run_units(workload, plan, cost, options.streams, timeline);
  const double last = std::max(end, timeline.backward_seconds);
  timeline.iteration_seconds = workload.forward_seconds + last;
  timeline.exposed_seconds = last - timeline.backward_seconds;
  return timeline;
}

}  // namespace braid
