// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "metrics/families.h"

namespace braid {

// Parts of metric_infos(), in its order.
std::vector<MetricInfo> job_infos();
std::vector<MetricInfo> link_infos();
std::vector<MetricInfo> gpu_infos();

}  // namespace braid
