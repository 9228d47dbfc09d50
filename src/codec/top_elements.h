// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "codec/pick_kernels.h"

namespace braid {

// The k elements of the largest magnitude, exactly: NaN before infinity before all numbers, and of
// equal ones the first. In the order of their indices.
//
// A sample says which magnitude a few more than k elements have (as in DGC, Lin et al., ICLR
// 2018); those are picked while the values are made, slice by slice, and the k largest of
// them are chosen. Zeros are never picked: where fewer than k elements are others, as in a sum of
// few parts, the first zeros come to them. Where the sample was wrong, a histogram finds the k-th
// magnitude.
class TopElements {
 public:
  // `sample(index)`: about the magnitude bits that the element will have. Decides how long it
  // takes, and nothing else. k is 1 to `count`.
  TopElements(uint64_t count, uint64_t k, const std::function<uint32_t(uint64_t)>& sample);

  // For all elements, in order. `values` are kept by the caller until choose().
  void look_at(const float* values, uint64_t count);
  // `values`: all that were looked at.
  std::vector<uint32_t> choose(const float* values) const;

 private:
  std::vector<uint32_t> choose_of_picked() const;
  std::vector<uint32_t> picked_and_zeros() const;
  std::vector<uint32_t> choose_of_all(const float* values) const;

  const uint64_t count_;
  const uint64_t k_;
  const uint64_t picked_max_;
  const uint32_t magnitude_;  // of what is picked, at least
  uint64_t looked_at_ = 0;
  uint64_t found_ = 0;
  std::unique_ptr<PickedElement[]> picked_;
};

}  // namespace braid
