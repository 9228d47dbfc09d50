// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "proto/types.h"

namespace braid::proto {

static_assert(std::endian::native == std::endian::little,
              "the wire is little-endian, as is every host braid runs on");

// Active message ids.
inline constexpr unsigned kChunkMessage = 1;
inline constexpr unsigned kAckMessage = 2;

inline constexpr uint16_t kChunkMagic = 0xB4A1;
inline constexpr uint8_t kChunkVersion = 5;
inline constexpr uint32_t kChunkBytesMax = 4u << 20;

// Direct: a node's own part of a small all-reduce, whole, to every other node; `segment` is the
// sender's place in the ring.
enum class Phase : uint8_t { ReduceScatter = 1, AllGather = 2, Direct = 3 };

// How long the acknowledgement of a chunk may wait. One is for all that has come on the flow, so
// those that wait are one.
enum class AckTime : uint8_t { AtOnce = 0, Soon = 1, Late = 2 };

inline constexpr uint64_t kAckSoonMs = 4;
inline constexpr uint64_t kAckLateMs = 20;

constexpr uint64_t ack_wait_ms(AckTime time) {
  if (time == AckTime::AtOnce) return 0;
  return time == AckTime::Soon ? kAckSoonMs : kAckLateMs;
}

// The header of every chunk: says by itself what the bytes belong to, so nodes need not agree on an
// order. (job_key, tensor, step, unit, phase, segment, chunk) and the sender are a chunk's
// identity: receivers drop what they already have.
struct ChunkHeader {
  uint16_t magic;
  uint8_t version;
  uint8_t phase;        // Phase
  uint32_t unit;        // index in the operation
  uint64_t flow_token;  // of this generation of the flow, see net/flow_keys.h
  uint64_t job_key;     // names the job and its epoch
  uint64_t tensor;      // hash of the tensor's name (of the first one's, for a group)
  uint64_t step;
  uint16_t segment;    // place in the ring: its owner's; direct: sender's; exchange: receiver's
  uint8_t encoding;    // Encoding: what the payload is
  uint8_t ack_time;    // AckTime
  uint32_t chunk;      // index in the segment of the unit
  uint32_t bytes;      // of payload
  uint32_t signature;  // not 0: of a part that was sent before its receiver was known to be ready
  uint64_t sequence;   // 1, 2, 3, … on this flow
};
static_assert(sizeof(ChunkHeader) == 64);

// Everything up to and including `sequence` has arrived on this flow and was taken or dropped for
// good.
struct AckHeader {
  uint16_t magic;
  uint8_t version;
  uint8_t reserved[5];  // 0
  uint64_t flow_token;
  uint64_t sequence;
};
static_assert(sizeof(AckHeader) == 24);

// How many bytes of payload are announced by bytes that may be no header.
inline uint32_t chunk_payload_bytes(std::span<const uint8_t> header) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, header.data() + offsetof(ChunkHeader, bytes), sizeof(bytes));
  return bytes;
}

// Bytes that were checked, as the header that they are.
inline ChunkHeader chunk_header(std::span<const uint8_t> header) {
  ChunkHeader copied;
  std::memcpy(&copied, header.data(), sizeof(copied));
  return copied;
}

// Checked views of bytes that came from the network; nothing if they cannot be what they claim.
inline std::optional<ChunkHeader> parse_chunk_header(std::span<const uint8_t> header,
                                                     size_t payload_bytes) {
  ChunkHeader parsed;
  if (header.size() != sizeof(parsed)) return std::nullopt;
  std::memcpy(&parsed, header.data(), sizeof(parsed));
  const bool phase_is_known = parsed.phase >= static_cast<uint8_t>(Phase::ReduceScatter) &&
                              parsed.phase <= static_cast<uint8_t>(Phase::Direct);
  if (parsed.magic != kChunkMagic || parsed.version != kChunkVersion || !phase_is_known ||
      parsed.encoding >= kEncodingCount || parsed.ack_time > static_cast<uint8_t>(AckTime::Late) ||
      parsed.bytes != payload_bytes || parsed.bytes > kChunkBytesMax ||
      (parsed.signature != 0 && parsed.phase == static_cast<uint8_t>(Phase::AllGather))) {
    return std::nullopt;
  }
  return parsed;
}

inline std::optional<AckHeader> parse_ack_header(std::span<const uint8_t> header) {
  AckHeader parsed;
  if (header.size() != sizeof(parsed)) return std::nullopt;
  std::memcpy(&parsed, header.data(), sizeof(parsed));
  uint8_t reserved = 0;
  for (const uint8_t byte : parsed.reserved) reserved |= byte;
  if (parsed.magic != kChunkMagic || parsed.version != kChunkVersion || reserved != 0)
    return std::nullopt;
  return parsed;
}

}  // namespace braid::proto
