// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace braid {

// A set of small numbers below a bound that is given at the start.
class Bitmap {
 public:
  explicit Bitmap(uint64_t size) : words_((size + 63) / 64) {}

  bool test(uint64_t index) const { return (words_[index / 64] >> (index % 64) & 1) != 0; }
  void set(uint64_t index) { words_[index / 64] |= uint64_t{1} << (index % 64); }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace braid
