// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace braid::gpu_probe {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  double ms() const { return seconds() * 1e3; }
  double us() const { return seconds() * 1e6; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// The upper one of two. `values` has one at least.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Polls without a pause: what is measured is as short as a pause. False: the time is over.
template <typename Condition>
bool poll_until(const Condition& is_over, double seconds) {
  const Stopwatch watch;
  while (!is_over()) {
    if (watch.seconds() > seconds) return false;
  }
  return true;
}

}  // namespace braid::gpu_probe
