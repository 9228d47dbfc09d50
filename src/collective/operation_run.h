// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collective/engine.h"
#include "collective/local_step.h"
#include "collective/unit.h"
#include "collective/unit_state.h"

namespace braid {

class OperationRun;

// What a running operation needs from its engine. None of the calls comes back into the operation.
class OperationHost {
 public:
  virtual ~OperationHost() = default;
  virtual Link* find_link(NodeId peer) = 0;
  virtual void on_stream_taken(const OperationRun& run) = 0;
  virtual void on_unit_finished(const OperationRun& run, bool held_stream) = 0;
  virtual void on_bytes_reduced(uint64_t bytes) = 0;
  // is_done() or is_retired() may have become true.
  virtual void on_progress(OperationRun& run) = 0;
};

enum class ChunkVerdict : uint8_t { Taken, Duplicate, Malformed };

// One operation's units on one I/O loop: which chunks have come, what to do with the next one, what
// to pass on. Chunks that it submits keep it (and so the job's memory) alive until they are
// settled. I/O loop only.
class OperationRun final : public ChunkSource, public std::enable_shared_from_this<OperationRun> {
 public:
  OperationRun(Operation operation, const EngineOptions& options, OperationHost& host);

  const OperationKey& key() const { return operation_.key; }
  uint64_t urgency() const { return operation_.urgency; }
  // Units of this loop, here and below by their place among them (0, 1, …).
  size_t units() const { return units_.size(); }
  const UnitState& unit(size_t index) const { return units_[index]; }
  // Has this node bytes to send in the unit before anything has come?
  bool starts_here(size_t index) const;

  bool is_local() const { return ring_.nodes == 1; }
  bool is_ready() const { return is_ready_; }
  // The successor takes chunks from now on. Units are begun by the engine, or by the first chunk
  // that comes.
  void set_ready() { is_ready_ = true; }
  void begin_unit(size_t index);

  ChunkVerdict accept(NodeId from, const proto::ChunkHeader& header,
                      std::span<const uint8_t> payload);

  // One node only: reduces or copies up to `bytes_max` (a multiple of 64). True when nothing is
  // left.
  bool work(uint64_t bytes_max);

  // The result is final and nothing reads the inputs.
  bool is_done() const;
  // Moreover every chunk that was sent is acknowledged.
  bool is_retired() const { return is_done() && sends_left_ == 0; }

  // The operation is over: its chunks have no bytes any more, and the engine isn't told of
  // anything.
  void abandon() { host_ = nullptr; }
  bool is_abandoned() const { return host_ == nullptr; }

  std::span<const uint8_t> chunk_bytes(const OutgoingChunk& chunk) override;
  void on_chunk_settled(const OutgoingChunk& chunk, bool acknowledged) override;

  // The engine's notes: has on_done been told; is this in the list of those to look at?
  bool was_done_told = false;
  bool is_listed = false;

 private:
  bool is_reduced() const;   // has a reduce-scatter phase
  bool is_gathered() const;  // has an all-gather phase
  uint32_t next() const { return (ring_.self + 1) % ring_.nodes; }
  uint32_t previous() const { return (ring_.self + ring_.nodes - 1) % ring_.nodes; }
  uint32_t first_segment() const { return is_reduced() ? previous() : ring_.self; }
  // Is the chunk sent from where the trainer put it? Then its bytes are in one piece.
  const uint8_t* input_to_send(proto::Phase phase, uint32_t segment, const Extent& extent) const;
  uint64_t count_input_sends(uint32_t unit) const;

  UnitState make_unit(uint32_t unit);
  UnitState* find_unit(uint32_t unit);
  bool is_possible(proto::Phase phase, const proto::ChunkHeader& header) const;
  void prepare(UnitState& unit, const proto::ChunkHeader& header, const Extent& extent);
  void pass_on(const UnitState& unit, proto::Phase phase, uint32_t segment, uint32_t chunk);
  void submit(const UnitState& unit, proto::Phase phase, uint32_t segment, uint32_t chunk);
  void chunk_is_in(UnitState& unit);
  void finish_if_complete(UnitState& unit);

  Operation operation_;
  const Ring& ring_;
  const Partition partition_;
  const uint32_t io_loops_;
  OperationHost* host_;
  LocalStep step_;
  std::vector<UnitState> units_;
  uint32_t first_unit_ = 0;  // of this loop; the others follow at distances of io_loops

  bool is_ready_ = false;
  uint64_t remaining_ = 0;  // chunks of all units (one node: bytes)
  uint64_t sends_left_ =
      0;  // chunks to send that are not yet acknowledged; never 0 again once a link was lost
  uint64_t input_sends_left_ = 0;  // those of them whose bytes are an input's

  size_t work_unit_ = 0;  // one node: how far the work has come
  uint64_t work_bytes_ = 0;
};

}  // namespace braid
