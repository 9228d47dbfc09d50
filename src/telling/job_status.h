// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "job/job.h"
#include "metrics/status.h"

namespace braid {

// A job as `braidctl status` shows it. The memory of input arenas is what the last look has found.
DaemonStatus::Job job_status(const Job& job);

// A job as `braidctl tune` shows it, JSON. `tuning`: what its coordinator says; nothing on the
// other nodes.
std::string job_tuning(const Job& job, const std::optional<std::string>& tuning);

}  // namespace braid
