// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace braid::bench {

std::string format_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.3f} s", seconds);
}

double median(std::vector<double> values) {
  BRAID_ASSERT(!values.empty(), "no iteration, no median");
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double p99(std::vector<double> values) {
  BRAID_ASSERT(!values.empty(), "no iteration, no percentile");
  std::sort(values.begin(), values.end());
  const size_t count = (values.size() * 99 + 99) / 100;  // of the values up to it
  return values[count - 1];
}

}  // namespace braid::bench
