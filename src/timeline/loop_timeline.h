// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "timeline/event_ring.h"

namespace braid {

// What one I/O loop notes of its jobs: the latest spans. Those of single chunks, which are many,
// have a ring of their own. Plain stores into memory that was allocated once, by that loop only.
class LoopTimeline {
 public:
  // How many spans one call of copy() looks at: about 0.2 ms.
  static constexpr size_t kLookedAtMax = 4096;

  // Half of them of single chunks. 64 bytes each.
  explicit LoopTimeline(size_t events) : spans_(events - events / 2), chunks_(events / 2) {}

  void record(const TimelineEvent& event) {
    const bool is_of_chunk = event.kind == SpanKind::Chunk || event.kind == SpanKind::Reduce;
    (is_of_chunk ? chunks_ : spans_).record(event);
  }

  // How far a copy has come.
  struct Cursor {
    uint64_t span = 0;
    uint64_t chunk = 0;
    uint64_t spans_end = 0;
    uint64_t chunks_end = 0;
    bool is_at_end() const { return span == spans_end && chunk == chunks_end; }
  };
  // A cursor over what is there now.
  Cursor begin() const {
    return {spans_.overwritten(), chunks_.overwritten(), spans_.written(), chunks_.written()};
  }
  // Looks at the next kLookedAtMax events, and copies those that are wanted.
  void copy(const TimelineFilter& wanted, Cursor& cursor, std::vector<TimelineEvent>& out) const {
    if (cursor.span != cursor.spans_end) {
      cursor.span = spans_.copy(wanted, cursor.span, cursor.spans_end, kLookedAtMax, out);
    } else {
      cursor.chunk = chunks_.copy(wanted, cursor.chunk, cursor.chunks_end, kLookedAtMax, out);
    }
  }
  // When the `count`-th latest operation of the job began, or the oldest that there is; 0: there is
  // none. Only the control loop's timeline has operations.
  uint64_t begin_of_operations(uint64_t job_key, size_t count) const {
    return spans_.begin_of_latest(job_key, SpanKind::Operation, count);
  }
  uint64_t overwritten() const { return spans_.overwritten() + chunks_.overwritten(); }

 private:
  EventRing spans_;
  EventRing chunks_;
};

}  // namespace braid
