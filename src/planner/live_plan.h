// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "planner/fitted_cost.h"
#include "planner/plan.h"
#include "planner/trace.h"

namespace braid {

// What a daemon says of one set of planned tensors (PlanBook::to_json).
struct LiveSet {
  // How a group travels, and what the guard has read of it. Nothing of what is not there.
  struct Codec {
    std::string name;  // with parameters; "none": as plain elements
    bool is_read = false;
    std::optional<double> residual = {};
    std::optional<double> cosine = {};
    std::optional<double> saturation = {};
  };
  // Tensors whose codec has ended.
  struct Plain {
    std::vector<std::string> tensors;
    std::string codec;
    uint64_t from_step = 0;
    std::string limit;  // which one was passed
    double measured = 0;
    double allowed = 0;
  };
  // A set of the job that began a step between two steps of this one.
  struct Beside {
    std::string tensor;         // its first
    double before_seconds = 0;  // the later of the two
    double share = 0;           // of this set's steps
  };
  uint32_t plan = 0;       // the number of the plan that holds
  uint64_t from_step = 0;  // it holds since
  std::string planner;     // what made it; "first": no planner did
  uint32_t streams = 1;
  uint32_t nodes = 0;                            // of the job; 0: not told
  uint32_t io_threads = 1;                       // of this node
  double carry_seconds_per_byte = 0;             // processor time of this daemon; 0: not measured
  uint64_t steps_measured = 0;                   // complete steps, the ignored ones included
  uint64_t steps_ignored = 0;                    // nothing is kept of the first ones
  double predicted_iteration_seconds = 0;        // 0: nothing was predicted
  double measured_iteration_seconds = 0;         // 0: nothing was measured
  std::optional<FittedCost> cost;                // what the plan was made with
  Trace trace;                                   // times are 0 as long as nothing was measured
  std::vector<std::vector<std::string>> groups;  // names, in sending order
  std::vector<Codec> codecs;                     // by group; none: the daemon does not say
  std::vector<Plain> plain;
  std::vector<Beside> beside;
  uint64_t sampled_every_steps = 0;  // 0: never
  std::string coordinator;           // the node that has the readings
  bool is_coordinator = false;       // the one that was asked

  bool is_measured() const { return steps_measured > steps_ignored; }
};

struct LiveJob {
  std::string name;
  std::vector<LiveSet> sets;
};

// The answer to PlanQuery. Errors name the entry.
Result<std::vector<LiveJob>> parse_live_plans(std::string_view text);

// The set that has most bytes; nothing of a job without planned tensors.
std::optional<LiveSet> largest_set(LiveJob job);

// `groups` as a plan of `trace`'s tensors. What the trace's order of backward has apart, because
// tensors have changed places since the plan was made, becomes groups of its own.
Result<Plan> plan_of_groups(const std::vector<std::vector<std::string>>& groups,
                            const Trace& trace);

}  // namespace braid
