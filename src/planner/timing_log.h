// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "planner/fit_cost.h"

namespace braid {

// How long all-reduces took, as benchmarks print it. Lines of either form:
//   8,65536   1110.54      ranks, bytes, microseconds
//   65536     1110.54      the same without the ranks: what osu_allreduce prints
//   {"bytes": 65536, "median_seconds": 0.00111, "ranks": 8}      braid-bench --json; "concurrent",
//                          the number of units in flight, may be there
// Empty lines and those that begin with # are passed over.
struct TimingLog {
  std::optional<uint32_t> ranks;  // the same on all lines that have it
  std::vector<CostMeasurement> measurements;
};

// Errors begin with `file` and the line's number.
Result<TimingLog> parse_timing_log(std::string_view text, std::string_view file);
// All files as one; an error where their ranks differ.
Result<TimingLog> load_timing_logs(const std::vector<std::string>& paths);

}  // namespace braid
