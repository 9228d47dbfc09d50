// SPDX-License-Identifier: Apache-2.0
#include "planning/carry_meter.h"

#include <algorithm>
#include <vector>

namespace braid {

void CarryMeter::note(const CarriedWork& work) {
  const bool has_window = has_begun_ && work.bytes >= last_.bytes + kBytesMin &&
                          work.processor_ns >= last_.processor_ns;
  if (has_window) {
    windows_.push_back(static_cast<double>(work.processor_ns - last_.processor_ns) / 1e9 /
                       static_cast<double>(work.bytes - last_.bytes));
    if (windows_.size() > kWindowsKept) windows_.pop_front();
  }
  has_begun_ = true;
  last_ = work;
}

double CarryMeter::seconds_per_byte() const {
  if (windows_.empty()) return 0;
  std::vector<double> sorted(windows_.begin(), windows_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

}  // namespace braid
