// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "timeline/timeline_event.h"

namespace braid {

// Which spans are wanted: those of a job that touch [begin_ns, end_ns].
struct TimelineFilter {
  uint64_t job_key = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = UINT64_MAX;
};

// The latest spans, in memory that is allocated once. One loop uses it.
class EventRing {
 public:
  // Rounded up to a power of two; at least 1.
  explicit EventRing(size_t events) : events_(std::bit_ceil(events)) {}

  void record(const TimelineEvent& event) { events_[written_++ & (events_.size() - 1)] = event; }

  size_t capacity() const { return events_.size(); }
  uint64_t written() const { return written_; }
  uint64_t overwritten() const { return written_ > events_.size() ? written_ - events_.size() : 0; }

  // When the `count`-th latest span of this kind and job began, or the oldest that there is; 0:
  // there is none.
  uint64_t begin_of_latest(uint64_t job_key, SpanKind kind, size_t count) const {
    uint64_t begin_ns = 0;
    for (uint64_t i = written_; i > overwritten() && count > 0; --i) {
      const TimelineEvent& event = events_[(i - 1) & (events_.size() - 1)];
      if (event.job_key != job_key || event.kind != kind) continue;
      begin_ns = event.begin_ns;
      --count;
    }
    return begin_ns;
  }

  // Copies what is wanted of the next `count` events from the `from`-th one ever written on, before
  // the `end`-th, and says where to go on: `end` when all were looked at. Those that were
  // overwritten meanwhile are passed over, without being counted.
  uint64_t copy(const TimelineFilter& wanted, uint64_t from, uint64_t end, size_t count,
                std::vector<TimelineEvent>& out) const {
    from = from < overwritten() ? overwritten() : from;
    for (; from < end && count > 0; ++from, --count) {
      const TimelineEvent& event = events_[from & (events_.size() - 1)];
      if (event.job_key == wanted.job_key && event.end_ns >= wanted.begin_ns &&
          event.begin_ns <= wanted.end_ns)
        out.push_back(event);
    }
    return from < end ? from : end;
  }

 private:
  std::vector<TimelineEvent> events_;
  uint64_t written_ = 0;
};

}  // namespace braid
