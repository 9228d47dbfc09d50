// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/count_kept.h"
#include "engine/link.h"
#include "engine/operation.h"
#include "engine/transfer_settings.h"
#include "loop/loop.h"
#include "timeline/loop_timeline.h"

namespace braid {

struct EngineOptions {
  uint32_t io_loops =
      1;  // units are dealt to the loops by (mix64(tensor) + step + unit) mod io_loops
  uint32_t io_loop = 0;  // which one this is
  uint64_t unit_bytes = 8 << 20;
  uint32_t chunk_bytes = 128 << 10;
  uint32_t streams =
      4;  // units in flight per job on this loop; the others wait, the most urgent goes first
  LoopTimeline* timeline = nullptr;  // of this loop; nullptr: nothing is noted
};

struct EngineCounters {
  uint64_t units_done = 0;
  uint64_t bytes_reduced = 0;  // written as sums, or as parts of sums
  // Written as they came or lay: results of halves, parts that wait for their turn, what came
  // before its operation.
  uint64_t bytes_copied = 0;
  // What the chunks that were taken stand for, as bytes of all-reduces: an all-reduce counts all of
  // its bytes once all that its route brings to this node has come, of whatever size that is.
  uint64_t bytes_carried = 0;
  uint64_t chunks_duplicate = 0;  // came twice
  uint64_t chunks_stale = 0;      // for an operation that is over or unknown
  uint64_t chunks_malformed = 0;  // for a known operation, but with impossible numbers
};

// Runs the units of operations that belong to one I/O loop: local reduce, reduce-scatter, owner's
// step, all-gather; each operation by its route. I/O loop only. Knows nothing of
// trainers, readiness of others or deadlines: the job layer says start, go and abort.
class Engine : public ChunkSink {
 public:
  // Told on the I/O loop, from within the loop's callbacks.
  struct Events {
    // Every byte of the result that belongs to this loop's units is final, and nobody needs the
    // inputs any more: publish.
    std::function<void(const OperationKey&)> on_done;
    // Moreover every chunk sent from the result was acknowledged: its memory may be used for
    // something else. Comes after on_done.
    std::function<void(const OperationKey&)> on_retired;
    // A chunk for an unknown operation: the job layer's messages that wait at this loop's door must
    // be handled now (the operation may be among them). Called at most once for each intake() and
    // on_chunk().
    std::function<void()> drain_door;
    // There is no room for what came early from the peer: the job must end. Once per job. `room` is
    // what CountKept said; ok: no peer that keeps to the rules would have sent so much.
    std::function<void(uint64_t job_key, NodeId from, const Status& room)> on_overrun{};
  };

  static std::unique_ptr<Engine> create(Loop& loop, EngineOptions options, Events events);

  // Where chunks go; set once before the first start (the transport needs the engine first).
  virtual void set_links(Links& links) = 0;
  // Early operations of the job may come from now on, also from nodes that are ahead of this one;
  // until abort_job. `count_kept`: called on the I/O loop, and destroyed there.
  virtual void begin_job(uint64_t job_key, CountKept count_kept) = 0;
  // How much the job may have in flight from now on; what is in flight already stays, and a unit
  // that others have begun is not held up by it. Until abort_job.
  virtual void limit_job(uint64_t job_key, const JobShare& share) = 0;
  // From now on chunks of this operation are accepted. Nothing is sent yet; with one node the work
  // begins at once, and so does an early operation.
  virtual void start(Operation operation) = 0;
  // All nodes that this one sends to are ready: send. Ignored: unknown keys (the operation was
  // aborted), and early operations, which wait for nobody.
  virtual void go(const OperationKey& key) = 0;
  // Forgets all operations of the job: no event comes for them any more; their memory is released
  // once no flow reads it.
  virtual void abort_job(uint64_t job_key) = 0;

  virtual EngineCounters counters() const = 0;  // any thread
};

}  // namespace braid
