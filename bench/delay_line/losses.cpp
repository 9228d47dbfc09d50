// SPDX-License-Identifier: Apache-2.0
#include "bench/delay_line/losses.h"

#include <limits>

#include "base/assert.h"

namespace braid::delay_line {

Losses::Losses(double percent, uint64_t seed)
    : chance_(percent / 100), random_(seed), until_loss_(packets_until_loss()) {
  BRAID_ASSERT(percent >= 0 && percent < 100, "not a share of packets that can be lost");
}

uint64_t Losses::packets_until_loss() {
  if (chance_ <= 0) return std::numeric_limits<uint64_t>::max();
  return std::geometric_distribution<uint64_t>(chance_)(random_);
}

const std::vector<PacketRange>& Losses::arriving(uint32_t packets) {
  arriving_.clear();
  uint32_t begin = 0;
  while (until_loss_ < packets - begin) {
    const auto lost = begin + static_cast<uint32_t>(until_loss_);
    if (begin < lost) arriving_.push_back({begin, lost});
    begin = lost + 1;
    until_loss_ = packets_until_loss();
  }
  if (begin < packets) arriving_.push_back({begin, packets});
  if (chance_ > 0) until_loss_ -= packets - begin;
  return arriving_;
}

}  // namespace braid::delay_line
