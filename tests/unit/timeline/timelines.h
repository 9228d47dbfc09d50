// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "timeline/node_timeline.h"

namespace braid::testing {

// Rank 0 of two on node "a": two steps of two layers that are one operation each; the second step's
// results have not come. In between it makes one inverse, and waits for another.
inline NodeTimeline two_steps() {
  NodeTimeline timeline;
  timeline.node = "a";
  timeline.version = "1.2.3";
  timeline.job = "train";
  timeline.epoch = 3;
  timeline.world_size = 2;
  timeline.ranks = {0};
  timeline.origin_ns = 1'000'000;
  timeline.told = 9000;
  timeline.overwritten = 5;
  timeline.tensors = {"layer0", "layer1"};
  timeline.peers = {"b"};
  timeline.rails = {"eth0"};
  timeline.submits = {
      {0, 1, 7, 0, true}, {0, 0, 7, 1000, true}, {0, 1, 8, 6000, true}, {0, 0, 8, 7000, true}};
  timeline.operations = {{1, 7, 0, 500, 3000, 4096, 1, 0}, {0, 7, 1000, 1000, 4000, 4096, 1, 0}};
  timeline.unfinished = {{1, 8, 6000, NodeTimeline::Unfinished::kNotGone, 0, 1, 0},
                         {0, 8, 7000, NodeTimeline::Unfinished::kNotGone, 1, 1, 0}};
  timeline.units = {{0, 0, 1, 7, 0, 500, 2900, 4096},
                    {0, NodeTimeline::kNoStream, 0, 7, 0, 1000, 3900, 4096}};
  timeline.reduces = {{0, 1, 7, 0, 500, 600, 2048}};
  timeline.chunks = {{0, 2, 0, 0, 1, 7, 0, 600, 1600, 2048, false, false},
                     {0, 2, 0, 0, 1, 7, 0, 700, 1700, 2048, true, true}};
  timeline.names = {"inverses", "layer0.A", "layer1.A"};
  timeline.work = {{0, 0, 1, 0, 4000, 5000, false}, {0, 0, 2, 1, 5000, 5500, true}};
  return timeline;
}

}  // namespace braid::testing
