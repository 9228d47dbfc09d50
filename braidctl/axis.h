// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace braid {

// Maps values to pixels, evenly or by their logarithm.
struct Axis {
  double low = 0;  // values, low < high; more than 0 if logarithmic
  double high = 1;
  double low_pixel = 0;
  double high_pixel = 1;
  bool is_logarithmic = false;

  double pixel(double value) const;
  // About `count` round values between low and high, both included if round.
  std::vector<double> ticks(size_t count) const;
};

// "0.25", "1500", "2e+06": no more digits than needed.
std::string format_number(double value);

// In which unit times up to `seconds` are best read: {"ms", 1e3}.
struct TimeUnit {
  const char* name;
  double per_second;
};
TimeUnit time_unit(double seconds);

}  // namespace braid
