// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "engine/partition.h"
#include "proto/types.h"

namespace braid {

// What travels instead of the elements of an all-reduce (sum or average of float32): how a chunk is
// encoded for its way, and decoded where it is added or stored. The same one on all nodes. An
// operation without one sends its elements as they are.
//
// A chunk's bytes are a Part, what the ranks of one node give, or a Sum of several nodes' parts.
// Each chunk is encoded once: resends and what is passed on of a sum are those bytes again, and the
// node that encodes a sum keeps what the others decode. So all ranks get the same bits. For an
// average, parts are divided by the number of ranks before they are encoded.
//
// Calls for different extents may come on different I/O loops.
class Hop {
 public:
  virtual ~Hop() = default;
  // The most bytes that encode() makes of so many elements; grows with `elements`.
  virtual uint64_t encoded_bytes_max(Encoding encoding, uint64_t elements) const = 0;
  // Whether encode() makes exactly so many.
  virtual bool has_exact_size() const = 0;
  // Whether a node adds its own part as others decode it, too.
  virtual bool encodes_own_part() const = 0;
  // Encodes one chunk, `extent` of the operation. Returns the length, 1 at least. Once for each
  // extent: what it loses may go into a memory, from which the next step's chunk gets it.
  virtual uint32_t encode(Encoding encoding, const Extent& extent, std::span<const float> values,
                          std::span<uint8_t> encoded) = 0;
  // False: encode() makes no such thing of so many elements, and nothing was written. `encoded`
  // comes from a peer and may be anything.
  virtual bool decode(Encoding encoding, std::span<const uint8_t> encoded,
                      std::span<float> out) const = 0;
  virtual bool decode_and_add(Encoding encoding, std::span<const uint8_t> encoded,
                              std::span<float> sum) const = 0;
};

// The larger one of both encodings.
inline uint64_t encoded_bytes_max(const Hop& hop, uint64_t elements) {
  const uint64_t part = hop.encoded_bytes_max(Encoding::Part, elements);
  const uint64_t sum = hop.encoded_bytes_max(Encoding::Sum, elements);
  return part > sum ? part : sum;
}

}  // namespace braid
