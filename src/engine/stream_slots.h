// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.h"

namespace braid {

// The streams of one job on one I/O loop that units hold, by number: a unit gets the lowest that is
// free. There may be more of them than a job may begin of its own accord, for others begin units,
// too.
class StreamSlots {
 public:
  uint32_t taken() const { return taken_; }

  uint32_t take() {
    size_t word = 0;
    while (word < words_.size() && words_[word] == UINT64_MAX) ++word;
    if (word == words_.size()) words_.push_back(0);
    const auto bit = static_cast<uint32_t>(std::countr_one(words_[word]));
    words_[word] |= uint64_t{1} << bit;
    ++taken_;
    return static_cast<uint32_t>(word * 64) + bit;
  }

  void give_back(uint32_t slot) {
    const uint64_t bit = uint64_t{1} << (slot % 64);
    BRAID_ASSERT(slot / 64 < words_.size() && (words_[slot / 64] & bit) != 0,
                 "a unit gave back a stream that it had not taken");
    words_[slot / 64] &= ~bit;
    --taken_;
  }

 private:
  std::vector<uint64_t> words_;
  uint32_t taken_ = 0;
};

}  // namespace braid
