// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace braid {

// What one node did for one job in a span of time, by its own clock. Times (at, begin, go, end) are
// nanoseconds after origin_ns. Numbers of tensors, peers and rails are places in the lists of
// names.
//
// As JSON it is compact: each list of spans is an array of arrays, whose columns are the fields in
// the order in which they stand here; true is 1.
//
//   {"format": 1, "node": "a", "version": "1.0.0", "job": "resnet", "epoch": 1, "world_size": 4,
//    "ranks": [0, 1], "origin_ns": 1234567, "told": 900, "overwritten": 0, "dropped": 0,
//    "tensors": ["layer0"], "peers": ["b"], "rails": ["eth0"],
//    "submits":    [[rank, tensor, step, at, is_planned], …],
//    "operations": [[tensor, step, begin, go, end, bytes, tensors, plan], …],
//    "unfinished": [[tensor, step, begin, go, missing, tensors, plan], …],
//    "units":      [[io_loop, stream, tensor, step, unit, begin, end, bytes], …],
//    "reduces":    [[io_loop, tensor, step, unit, begin, end, bytes], …],
//    "chunks":     [[io_loop, flow, peer, rail, tensor, step, unit, begin, end, bytes, is_sum,
//                    is_resent], …],
//    "names":      ["inverses", "layer0.A"],
//    "work":       [[rank, work, item, owner, begin, end, is_wait], …]}
struct NodeTimeline {
  static constexpr uint32_t kFormat = 1;
  static constexpr int32_t kNoStream = -1;
  static constexpr int32_t kNoPlan = -1;
  static constexpr int64_t kEverybody = -1;

  // A rank has given a tensor: its gradient, or its input of another collective.
  struct Submit {
    uint32_t rank = 0;
    uint32_t tensor = 0;
    uint64_t step = 0;  // of this tensor
    uint64_t at = 0;
    bool is_planned = false;  // then `step` is a step of training
  };
  // From the submission that completed it (all local ranks gave all of its tensors) to `go`, it
  // waits for memory and other nodes; from then on to `end`, when its results are published.
  struct Operation {
    uint32_t tensor = 0;  // of a group: the first one
    uint64_t step = 0;
    uint64_t begin = 0;
    uint64_t go = 0;
    uint64_t end = 0;
    uint64_t bytes = 0;    // of its result
    uint32_t tensors = 1;  // of its group
    int32_t plan = kNoPlan;
  };
  // An operation that some local rank has begun and that had not ended when this was told.
  struct Unfinished {
    static constexpr int64_t kNotGone = -1;

    uint32_t tensor = 0;
    uint64_t step = 0;
    uint64_t begin = 0;     // its latest submission
    int64_t go = kNotGone;  // kNotGone: it waits for submissions, memory or other nodes
    uint64_t missing = 0;   // submissions of local ranks, one for each of its tensors
    uint32_t tensors = 1;
    int32_t plan = kNoPlan;
  };
  // From its first chunk to the last one that this node waits for.
  struct Unit {
    uint32_t io_loop = 0;
    int32_t stream = kNoStream;  // of its I/O loop; units that need none have kNoStream
    uint32_t tensor = 0;         // of its operation, as in all below
    uint64_t step = 0;
    uint32_t unit = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t bytes = 0;
  };
  // The local ranks' inputs are added up, where that is a pass of its own.
  struct Reduce {
    uint32_t io_loop = 0;
    uint32_t tensor = 0;
    uint64_t step = 0;
    uint32_t unit = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t bytes = 0;
  };
  // From sending to acknowledgement, which may wait for others.
  struct Chunk {
    uint32_t io_loop = 0;
    uint32_t flow = 0;
    uint32_t peer = 0;
    uint32_t rail = 0;
    uint32_t tensor = 0;
    uint64_t step = 0;
    uint32_t unit = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t bytes = 0;
    bool is_sum = false;  // else a part, which the receiver adds to its own
    bool is_resent = false;
  };
  // A rank computes an item of placed work, or waits for what its owner computes; as the trainer
  // has told it.
  struct Work {
    uint32_t rank = 0;
    uint32_t work = 0;  // in `names`, as the next one
    uint32_t item = 0;
    int64_t owner = kEverybody;  // a rank
    uint64_t begin = 0;
    uint64_t end = 0;
    bool is_wait = false;
  };

  std::string node;
  std::string version;  // of braidd
  std::string job;
  uint32_t epoch = 0;
  uint32_t world_size = 0;
  std::vector<uint32_t> ranks;  // of this node, ascending
  uint64_t origin_ns = 0;       // CLOCK_MONOTONIC
  uint64_t told = 0;            // when this was told
  uint64_t overwritten = 0;     // spans of any job that newer ones have replaced since the start
  uint64_t dropped = 0;         // spans of the job that had no room in the answer: chunks first
  std::vector<std::string> tensors;
  std::vector<std::string> peers;
  std::vector<std::string> rails;
  std::vector<Submit> submits;
  std::vector<Operation> operations;
  std::vector<Unfinished> unfinished;
  std::vector<Unit> units;
  std::vector<Reduce> reduces;
  std::vector<Chunk> chunks;
  std::vector<std::string> names;
  std::vector<Work> work;
};

// So that its JSON takes at most `bytes_max`: names are shortened, then chunks are left out first,
// next reduces, units, placed work, submits, operations and unfinished ones, of each the oldest;
// `dropped` counts them.
void drop_to_fit(NodeTimeline& timeline, size_t bytes_max);
std::string to_json(const NodeTimeline& timeline);
// Unknown fields are ignored, missing ones left at their defaults. Errors name what is wrong: a
// list's row of another length, a number without a name, a span that ends before it begins.
Result<NodeTimeline> parse_node_timeline(std::string_view json);

// What all nodes tell of one job, on one clock.
struct JobTimeline {
  struct Node {
    // That this node's clock is ahead of the clock of the node that asked all others, and how far
    // that may be wrong.
    int64_t offset_ns = 0;
    uint64_t error_ns = 0;
    NodeTimeline timeline;
  };
  std::string job;
  uint64_t first_step = 0;           // of training, that was asked for; those before may be cut
  std::string failure;               // why it has failed; empty: it runs
  std::vector<Node> nodes;           // in ring order
  std::vector<std::string> missing;  // nodes that did not answer
};

// {"job": …, "first_step": …, "missing": […], "nodes": [{"offset_ns": …, "error_ns": …,
//  "timeline": {…}}, …]} of each job, in an array; as parse_node_timeline.
Result<std::vector<JobTimeline>> parse_job_timelines(std::string_view json);

}  // namespace braid
