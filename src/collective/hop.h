// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "proto/types.h"

namespace braid {

// What travels instead of an operation's bytes: how a chunk is encoded for each hop, and decoded
// before it is added or stored. The same one on all nodes. An operation without one sends its bytes
// as they are.
//
// encode() and decode() are pure functions, may be called on any I/O loop, and lose as much as they
// like: a chunk is encoded once, resends and what is passed on of a sum are those bytes again, and
// the node that encodes a sum keeps what the others decode. So all ranks get the same bits.
class Hop {
 public:
  virtual ~Hop() = default;
  // The most that encode() makes of so many bytes. Grows with `bytes`; of a whole chunk
  // proto::kChunkBytesMax at most.
  virtual uint32_t encoded_bytes_max(uint64_t bytes) const = 0;
  // Encodes one chunk's elements; returns the length, 1 to encoded_bytes_max() bytes.
  virtual uint32_t encode(DataType dtype, std::span<const uint8_t> plain,
                          uint8_t* encoded) const = 0;
  // Fills `plain`, which has the chunk's length. False: encode() makes no such thing of a chunk of
  // this length. `encoded` comes from a peer and may be anything.
  virtual bool decode(DataType dtype, std::span<const uint8_t> encoded,
                      std::span<uint8_t> plain) const = 0;
};

}  // namespace braid
