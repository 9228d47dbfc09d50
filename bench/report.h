// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace braid::bench {

double median(std::vector<double> values);
// The smallest value that 99 % of all do not exceed; the largest one when there are fewer than 100.
double p99(std::vector<double> values);

// "12.3 us", "1.234 ms", "5.678 s"
std::string format_seconds(double seconds);

}  // namespace braid::bench
