// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/unit_sums.h"

namespace braid {

// The chunks that a unit sends whose bytes are not those of the result or of one input. With a Hop
// each is encoded once, for all sendings; of an exchange, what lies in several pieces is copied
// into one until the chunk is settled. I/O loop only; lives in its UnitRun.
class WireChunks {
 public:
  WireChunks(OperationRun& run, uint32_t unit);

  Encoding encoding_of(proto::Phase phase, const ChunkPosition& position) const;
  // How long the chunk is that is about to be submitted. With a Hop it is encoded now, unless it
  // starts here and its length is known: then when a flow takes it.
  uint32_t length_of(proto::Phase phase, const ChunkPosition& position, UnitSums& sums);
  // With a Hop: its bytes.
  std::span<const uint8_t> encoded(proto::Phase phase, const ChunkPosition& position,
                                   UnitSums& sums);
  bool is_encoded(proto::Phase phase, const ChunkPosition& position) {
    return place_of(phase, position).length != 0;
  }
  // With a Hop: a sum that has come, to be passed on.
  void keep_sum(const ChunkPosition& position, std::span<const uint8_t> payload);
  // The bytes of an exchange.
  const uint8_t* gathered(const ChunkPosition& position);
  // Its bytes are not asked for any more.
  void on_settled(const ChunkPosition& position);

 private:
  struct Place {
    uint8_t* bytes;
    uint32_t& length;  // 0: it is not encoded yet
  };
  Place place_of(proto::Phase phase, const ChunkPosition& position);
  void encode(proto::Phase phase, const ChunkPosition& position, UnitSums& sums);
  uint64_t index_of(const ChunkPosition& position) const {
    return uint64_t{position.segment} * chunks_max_ + position.chunk;
  }

  OperationRun* run_;
  uint32_t unit_;
  uint32_t chunks_max_;  // of any segment
  // Made when they are needed. By segment and chunk; the encoded ones first for each part that is
  // sent, then for each sum.
  std::vector<std::unique_ptr<uint8_t[]>> gathered_;
  std::unique_ptr<uint8_t[]> encoded_;
  std::vector<uint32_t> encoded_lengths_;
  uint32_t encoded_stride_ = 0;
};

}  // namespace braid
