// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "collective/operation.h"
#include "collective/unit_state.h"
#include "net/link.h"

namespace braid {

class CollectiveRun;

// What a running operation needs from its engine. None of the calls comes back into the operation.
class OperationHost {
 public:
  virtual ~OperationHost() = default;
  virtual Link* find_link(NodeId peer) = 0;
  virtual void on_stream_taken(const CollectiveRun& run) = 0;
  virtual void on_unit_finished(const CollectiveRun& run, bool held_stream) = 0;
  virtual void on_bytes_reduced(uint64_t bytes) = 0;
  // is_done() or is_retired() may have become true.
  virtual void on_progress(CollectiveRun& run) = 0;
};

enum class ChunkVerdict : uint8_t { Taken, Duplicate, Malformed };

// One operation's units on one I/O loop, whichever way they go: which chunks have come, what to do
// with the next one, what to send on. Chunks that it submits keep it (and so the job's memory)
// alive until they are settled. I/O loop only.
class CollectiveRun : public ChunkSource, public std::enable_shared_from_this<CollectiveRun> {
 public:
  virtual const OperationKey& key() const = 0;
  virtual uint64_t urgency() const = 0;
  // Units of this loop, here and below by their place among them (0, 1, …).
  virtual size_t units() const = 0;
  virtual const UnitState& unit(size_t index) const = 0;
  // Does the unit wait here for a stream until it begins? It has bytes to send before anything has
  // come then.
  virtual bool starts_here(size_t index) const = 0;

  virtual bool is_ready() const = 0;
  // All nodes that this one sends to take chunks from now on. Units are begun by the engine, or by
  // the first chunk that comes.
  virtual void set_ready() = 0;
  virtual void begin_unit(size_t index) = 0;

  virtual ChunkVerdict accept(NodeId from, const proto::ChunkHeader& header,
                              std::span<const uint8_t> payload) = 0;

  // The result is final and nothing reads the inputs.
  virtual bool is_done() const = 0;
  // Moreover every chunk that was sent is acknowledged.
  virtual bool is_retired() const = 0;

  // The operation is over: its chunks have no bytes any more, and the engine isn't told of
  // anything.
  virtual void abandon() = 0;
  virtual bool is_abandoned() const = 0;

  // The engine's notes: has on_done been told; is this in the list of those to look at?
  bool was_done_told = false;
  bool is_listed = false;
};

}  // namespace braid
