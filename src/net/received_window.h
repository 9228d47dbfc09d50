// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstdint>

namespace braid {

// The most chunks of one flow that may be unacknowledged.
inline constexpr uint64_t kChunksInFlightMax = 256;

// Which of the sequence numbers 1, 2, 3, … have arrived. UCX promises no order between active
// messages, but an acknowledgement covers everything up to a number: so gaps are remembered, within
// kChunksInFlightMax.
class ReceivedWindow {
 public:
  // Everything up to and including this has arrived.
  uint64_t contiguous() const { return contiguous_; }

  // False if `sequence` came before, or lies where no honest sender can be.
  bool accept(uint64_t sequence) {
    if (sequence <= contiguous_ || sequence - contiguous_ > kChunksInFlightMax) return false;
    if (sequence == contiguous_ + 1) {  // nearly always
      ++contiguous_;
    } else {
      if (arrived_.test(sequence % kChunksInFlightMax)) return false;
      arrived_.set(sequence % kChunksInFlightMax);
      ++early_;
    }
    while (early_ > 0 && arrived_.test((contiguous_ + 1) % kChunksInFlightMax)) {
      ++contiguous_;
      arrived_.reset(contiguous_ % kChunksInFlightMax);
      --early_;
    }
    return true;
  }

 private:
  uint64_t contiguous_ = 0;
  uint64_t early_ = 0;  // bits set in arrived_: came before one that is missing
  std::bitset<kChunksInFlightMax> arrived_;
};

}  // namespace braid
