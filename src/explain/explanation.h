// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/node_facts.h"
#include "planner/live_plan.h"

namespace braid {

// What may bound a step.
enum class Cause : uint8_t {
  Stalled,         // no step ends any more
  NotFinite,       // gradients of a rank are not finite
  GpuLost,         // a rank's GPU does not answer any more
  GpuXid,          // the driver has reported an error of a rank's GPU
  GpuEcc,          // a rank's GPU has an uncorrectable memory error
  GpuHeat,         // a rank's GPU is slowed down by heat
  GpuPower,        // by its power cap, or a power brake
  GpuSlowdown,     // by its hardware, or by clocks that somebody has set
  GpuPcie,         // a rank's GPU has fewer lanes of PCIe, or a lower generation, than its slot
  GpuShared,       // other processes compute on a late rank's GPU
  LateRank,        // a rank gives its gradients later than the others
  Placement,       // placed work: all ranks wait for what one of them computes
  LostFlow,        // a flow has failed
  RailDown,        // a rail has no carrier
  SlowFlow,        // a flow delivers much less than its siblings
  SlowRail,        // a node's rail delivers much less than the other nodes'
  CompetingJobs,   // other jobs send over the same rails
  StarvedDaemon,   // a daemon waits for processors
  Plan,            // another plan would hide more
  SmallMessages,   // operations are so small that their startup is what they take
  Network,         // the rails carry what they can
  BeforeBackward,  // input, forward pass or optimizer take most of the step
  Compute          // communication is hidden
};
std::string_view to_string(Cause cause);  // "late_rank"
inline constexpr size_t kCauseCount = 23;

struct Finding {
  Cause cause = Cause::Compute;
  std::string text;    // a sentence: what is so
  std::string advice;  // one more: what would help; may be empty
  // What it costs of each step; 0: nothing, or nobody knows.
  double seconds_per_step = 0;
  std::string node = {};              // that it is about; empty: none
  std::optional<uint32_t> rank = {};  // the same
};

struct Explanation {
  std::string job;
  size_t nodes = 0;  // that have answered
  std::vector<std::string> missing;
  uint32_t world_size = 0;
  size_t steps = 0;            // that were looked at: the latest ones that all of these nodes know
  double step_seconds = 0;     // the median of these, as the next one
  double exposed_seconds = 0;  // what the rank that comes last waits for the network
  // Not 0: the job has no planned tensors, and so no steps. Then so many operations were looked at,
  // step_seconds is the time that they took together, and all other seconds are parts of that.
  size_t operations = 0;
  std::vector<Finding> findings;  // what costs most comes first
};

// Why the steps of a job take what they take. `before` and `after`: the same job's facts, a few
// seconds apart. `plan`: the set of planned tensors that is the largest one, where a daemon knows
// it. NotFound, if there is nothing to explain yet: it says what is missing.
Result<Explanation> explain(const JobFacts& before, const JobFacts& after,
                            const std::optional<LiveSet>& plan);

std::string to_json(const Explanation& explanation);
// For people: what holds, then what bounds the step and what would help, the costliest first.
std::string explanation_text(const Explanation& explanation);

}  // namespace braid
