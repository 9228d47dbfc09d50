// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace braid::bench {

// In the list of planners: the daemons plan, while the job runs.
inline constexpr const char* kLivePlanner = "live";

struct ReplayOptions {
  std::string trace_path;
  std::vector<std::string> planners;      // names of plan/planner.h, or kLivePlanner
  uint32_t streams = 4;                   // what is predicted and planned for: collective.streams
  uint32_t steps = 0;                     // measured ones, of each planner
  std::optional<double> forward_seconds;  // instead of the trace's
  double time_scale = 1;                  // of all times of the trace
  std::string codec;           // of the gradients; empty: none. kLivePlanner alone has any
  std::string cost_path;       // instead of a sweep
  std::string save_cost_path;  // where the fitted cost goes; nowhere if empty
  uint32_t timeout_ms = 60'000;
  std::string socket_path;
  bool as_json = false;
};

// Goes through the trace's steps as one rank of a job; all ranks call it with the same options. The
// forward and backward pass are slept through, gradients are real: submitted when the trace says
// that they are ready, and every result is compared with the exact sum. Planners take turns, a few
// steps each, so that what changes on the machine meanwhile hits them alike. Rank 0 prints to
// stdout. The first wrong result, on any rank, ends it on all.
Status run_replay(const ReplayOptions& options);

}  // namespace braid::bench
