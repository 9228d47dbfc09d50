// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "metrics/families.h"

namespace braid {

// What Prometheus calls the format of metrics_text().
inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

// The text of /metrics, from what the sources say now; samples of one series are added up. Any
// thread, as far as the sources allow it.
std::string metrics_text(const std::vector<MetricsSource>& sources);

}  // namespace braid
