// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braidctl/sweep.h"

// The part of a sweep that is about update methods.
namespace braid {

// workers · (iteration of one worker, which does not communicate) / iteration_seconds
double speedup_over_one(const Workload& workload, uint32_t workers, double iteration_seconds);

// Appends a row for each planner and method. `cost`: of all-reduces among `workers`, by the sweep's
// algorithm, of which the link's γ is the adding.
Status add_update_rows(const Workload& workload, const SweepOptions& options, uint32_t workers,
                       const LinearCostModel& cost, std::vector<SweepRow>& rows);

// The table of a sweep over `trace` with update methods.
std::string updates_table(const Trace& trace, const SweepOptions& options,
                          const std::vector<SweepRow>& rows);

}  // namespace braid
