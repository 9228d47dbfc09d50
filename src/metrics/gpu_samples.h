// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "gpu/gpu_facts.h"
#include "metrics/families.h"

namespace braid {

// The metrics braid_gpu_… of these GPUs. What is not known has no sample.
std::vector<MetricSample> gpu_samples(const std::vector<GpuFacts>& gpus);

}  // namespace braid
