// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace braid {

// How much the logarithm of a step's seconds varies from one step to the next under one setting:
// the standard deviation without outliers, from the median of the differences of neighbouring
// steps. What changes slowly is no part of it.
class Noise {
 public:
  void add(const std::vector<double>& log_seconds);  // of consecutive steps of one turn
  double of_step() const;
  // Standard error of the median of so many steps.
  double of_median(uint32_t steps) const;

 private:
  std::vector<double> differences_;
};

}  // namespace braid
