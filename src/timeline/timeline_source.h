// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "timeline/event_ring.h"
#include "timeline/node_timeline.h"
#include "timeline/timeline_event.h"
#include "timeline/work_spans.h"

namespace braid {

// What a node's loops have noted of one job, and the names for it: all that its NodeTimeline is
// made of, on any thread.
struct TimelineSource {
  struct Piece {
    uint32_t io_loop = 0;
    std::vector<TimelineEvent> events;
  };
  NodeTimeline head;  // without spans, origin and names of tensors and peers
  uint64_t told_ns = 0;
  std::vector<Piece> pieces;
  // Their end is not known; `bytes`: the submissions that are missing; go_or_peer: 0: not gone.
  std::vector<TimelineEvent> unfinished;
  // Those that touch the time that is `wanted` are taken.
  std::vector<std::shared_ptr<const WorkSpans>> work;
  TimelineFilter wanted;
  // Called on the thread that makes the timeline; nullptr: it has no name.
  std::function<std::shared_ptr<const std::string>(uint64_t hash)> name_of_tensor;
  std::unordered_map<uint64_t, std::string> peers;  // by node id
};

// Spans are in the order of their ends. Tensors and nodes without a name get their number as one.
NodeTimeline make_node_timeline(TimelineSource source);

}  // namespace braid
