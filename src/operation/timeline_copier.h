// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "loop/door.h"
#include "timeline/loop_timeline.h"
#include "timeline/timeline_source.h"

namespace braid {

// Copies what the I/O loops have noted to the control loop, a few thousand spans in a round of each
// loop, so that none is held up. Made before the loops' threads run, and destroyed after their end.
// Control loop only.
class TimelineCopier {
 public:
  struct Source {
    Loop* loop = nullptr;
    const LoopTimeline* timeline = nullptr;
  };
  // Also how many spans were overwritten since the start, of any job.
  using Copied = std::function<void(std::vector<TimelineSource::Piece>, uint64_t overwritten)>;

  TimelineCopier(Loop& control_loop, const std::vector<Source>& sources);

  // `copied` comes later, once; never when the copier ends before.
  void copy(const TimelineFilter& wanted, Copied copied);

 private:
  struct Ask {
    uint64_t copy = 0;
    TimelineFilter wanted;
    std::optional<LoopTimeline::Cursor> cursor;  // nothing: from the beginning
  };
  struct Told {
    uint64_t copy = 0;
    size_t source = 0;
    std::vector<TimelineEvent> events;
    LoopTimeline::Cursor cursor;
    uint64_t overwritten = 0;
  };
  struct Copy {
    TimelineFilter wanted;
    std::vector<TimelineSource::Piece> pieces;
    uint64_t overwritten = 0;
    size_t sources_left = 0;
    Copied copied;
  };
  void on_asked(size_t source, const LoopTimeline& timeline, const Ask& ask);
  void on_told(Told& told);

  uint64_t last_copy_ = 0;
  std::unordered_map<uint64_t, Copy> copies_;
  Door<Told> told_;
  std::vector<std::unique_ptr<Door<Ask>>> asks_;  // of each source
};

}  // namespace braid
