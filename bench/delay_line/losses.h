// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "bench/delay_line/packets.h"

namespace braid::delay_line {

// Says which packets are lost: each one with the same chance, whatever became of those before it.
class Losses {
 public:
  // `percent` is from 0 to below 100.
  Losses(double percent, uint64_t seed);

  // What arrives of a frame's `packets` packets: ranges in their order, none that is empty. The
  // result is valid until the next call.
  const std::vector<PacketRange>& arriving(uint32_t packets);

 private:
  uint64_t packets_until_loss();

  double chance_;
  std::mt19937_64 random_;
  uint64_t until_loss_;
  std::vector<PacketRange> arriving_;
};

}  // namespace braid::delay_line
