// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "gpu/gpu_facts.h"
#include "job/job.h"

namespace braid {

// The GPUs with the trainers of these jobs that compute on them. A trainer of several jobs is told
// of the one with the most planned bytes. Other processes are counted and not told: they are other
// users', or no trainers, or in a PID namespace that the daemon does not see.
std::vector<GpuFacts> with_ranks(std::vector<GpuFacts> gpus, const std::vector<const Job*>& jobs);

}  // namespace braid
