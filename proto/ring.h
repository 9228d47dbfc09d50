// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace braid::proto {

// The memory of the two rings between one trainer and its daemon: [RingsHeader][submit
// entries][done entries]. Single producer, single consumer each; indices only grow, modulo 2^32.
// SPEC.md has the byte tables.

inline constexpr uint32_t kRingsMagic = 0x42524E47;  // "GNRB" in memory
inline constexpr uint32_t kRingCapacityMax = 1u << 16;
inline constexpr uint32_t kArenasMax = 16;  // of one trainer

enum class SubmitKind : uint8_t { Operation = 1, Release = 2, Send = 3, Receive = 4 };

// Receive: from whichever rank.
inline constexpr uint32_t kAnyRank = UINT32_MAX;

// An operation; a result that is given back (only kind and ticket count then); or one end of a
// message between two ranks: then `root` is the other rank, `step` the tag and `count` the bytes,
// and what says nothing of a message is 0 (of a Receive also `arena` and `offset`).
struct SubmitEntry {
  uint8_t kind;        // SubmitKind
  uint8_t collective;  // Collective
  uint8_t dtype;       // DataType
  uint8_t reduction;   // Reduction
  uint32_t tensor;     // handle
  uint64_t ticket;     // chosen by the client: 1, 2, 3, …
  uint64_t step;
  uint64_t count;   // elements, see braid_collective
  uint64_t offset;  // of the input, in the arena
  uint32_t root;    // rank
  uint32_t timeout_ms;
  uint32_t reserved;  // 0
  uint32_t arena;     // where `offset` and `table` lie: 0 is that of OpenJob
  // Offset in the arena of the table of splits of an all-to-all, or of a tensor with state the
  // UpdateEntry; else 0.
  uint64_t table;
};
static_assert(sizeof(SubmitEntry) == 64);

struct DoneEntry {
  uint64_t ticket;
  uint64_t result_offset;  // in the result memory
  uint64_t result_bytes;
  uint32_t source;    // Receive: the rank that has sent; else 0
  uint32_t reserved;  // 0
};
static_assert(sizeof(DoneEntry) == 32);

// `tail` and `consumer_may_poll` are written by the producer, `head` and `consumer_sleeps` by the
// consumer. A producer that finds consumer_sleeps set after it moved tail clears it and sends the
// ring's wake-up. consumer_may_poll, of the done ring alone: 1: it pays to poll it before sleeping.
struct RingIndices {
  alignas(64) std::atomic<uint32_t> tail;
  std::atomic<uint32_t> consumer_may_poll;
  alignas(64) std::atomic<uint32_t> head;
  std::atomic<uint32_t> consumer_sleeps;
};

struct RingsHeader {
  uint32_t magic;
  uint32_t version;          // kClientProtocolVersion
  uint32_t submit_capacity;  // entries, a power of two
  uint32_t done_capacity;
  RingIndices submit;
  RingIndices done;
};
static_assert(sizeof(RingsHeader) == 320);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

constexpr size_t rings_bytes(uint32_t submit_capacity, uint32_t done_capacity) {
  return sizeof(RingsHeader) + submit_capacity * sizeof(SubmitEntry) +
         done_capacity * sizeof(DoneEntry);
}

}  // namespace braid::proto
