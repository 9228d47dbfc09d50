// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::bench {

// What one planner's steps took.
struct ReplayResult {
  std::string planner;
  uint32_t streams = 1;
  size_t groups = 0;
  std::vector<double> seconds;     // one per step: the slowest rank's
  std::vector<double> iterations;  // rank 0's, from one step's beginning to the next one's
  double predicted_seconds = 0;    // 0: nothing was predicted
  std::optional<uint32_t> plan;    // live: the number of the plan that held at the end
  bool is_settled = true;          // it held for all measured steps
};

// Planners take turns, so many steps at a time.
inline constexpr uint32_t kTurnSteps = 5;

// How many times as long as `base` it took: the median over the turns of the ratio of their
// medians. On a machine that others use too it says more than the ratio of two medians.
double paired_ratio(const std::vector<double>& seconds, const std::vector<double>& base);

// One object: "planner", "streams", "steps", "groups", "measured_seconds", "p99_seconds",
// "predicted_seconds" and "ratio" (measured to predicted) where there is a prediction,
// "iteration_seconds" where one step follows another, "plan" and "settled" of live ones, and if
// there are several "base", the first planner, and "paired_ratio" to it.
std::string to_json(const ReplayResult& result, const ReplayResult& base, bool has_several);
std::string replay_table(std::span<const ReplayResult> results);

}  // namespace braid::bench
