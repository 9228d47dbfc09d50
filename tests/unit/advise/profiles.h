// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "advise/codec_profile.h"

namespace braid {

// A codec that leaves `share` of all bytes; coding takes `seconds_per_byte`.
inline CodecProfile profile(std::string name, double share, double seconds_per_byte) {
  CodecProfile codec;
  codec.name = std::move(name);
  codec.is_lossless = false;
  codec.part_share = share;
  codec.sum_share = share;
  codec.coding = {{1000, 1000 * seconds_per_byte}};
  return codec;
}

}  // namespace braid
