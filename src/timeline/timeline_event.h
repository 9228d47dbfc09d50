// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

enum class SpanKind : uint8_t { Submit, Operation, Unit, Reduce, Chunk };

// One span that has ended, as its loop notes it: see NodeTimeline for what each kind means. One
// cache line.
struct TimelineEvent {
  static constexpr uint16_t kNoSlot = UINT16_MAX;
  static constexpr uint32_t kSlotMax = kNoSlot - 1;  // stands for larger ones, too

  uint64_t job_key = 0;
  uint64_t tensor = 0;  // hash; of the operation, but for a Submit
  uint64_t step = 0;
  uint64_t begin_ns = 0;  // CLOCK_MONOTONIC
  uint64_t end_ns = 0;
  uint64_t bytes = 0;
  uint64_t go_or_peer = 0;  // Operation: when it went, ns; Chunk: the receiver's node id
  uint32_t number = 0;      // Submit: the rank; Operation: its tensors; else the unit
  uint16_t slot = kNoSlot;  // Unit: its stream; Chunk: its flow; Operation: its plan
  SpanKind kind = SpanKind::Submit;
  bool is_planned : 1 = false;  // Submit
  bool is_sum : 1 = false;      // Chunk, as is_resent
  bool is_resent : 1 = false;
};
static_assert(sizeof(TimelineEvent) == 64);

}  // namespace braid
