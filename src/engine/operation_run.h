// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/exchange.h"
#include "engine/hop.h"
#include "engine/kept_links.h"
#include "engine/link.h"
#include "engine/local_inputs.h"
#include "engine/owner_step.h"
#include "engine/unit_run.h"
#include "timeline/loop_timeline.h"

namespace braid {

class OperationRun;

// What a running operation needs from its engine. None of the calls comes back into the operation.
class OperationHost {
 public:
  virtual ~OperationHost() = default;
  virtual Links& links() = 0;
  // Its number, among those of the operation's job.
  virtual uint32_t take_stream(const OperationRun& run) = 0;
  // `stream`: that it gives back; nothing: it had none.
  virtual void on_unit_finished(const OperationRun& run, std::optional<uint32_t> stream) = 0;
  virtual void on_bytes_reduced(uint64_t bytes) = 0;
  virtual void on_bytes_copied(uint64_t bytes) = 0;
  virtual void on_bytes_carried(uint64_t bytes) = 0;
  // is_done() or is_retired() may have become true.
  virtual void on_progress(OperationRun& run) = 0;
  virtual LoopTimeline* timeline() { return nullptr; }  // nullptr: nothing is noted
};

// One operation's units on one I/O loop, whichever route they take. Chunks that it submits keep it
// (and so the job's memory) alive until they are settled, and so does an owner's step. I/O loop
// only.
class OperationRun final : public ChunkSource,
                           public StepListener,
                           public std::enable_shared_from_this<OperationRun> {
 public:
  OperationRun(Operation operation, const EngineOptions& options, OperationHost& host);
  OperationRun(const OperationRun&) = delete;
  OperationRun& operator=(const OperationRun&) = delete;

  const OperationKey& key() const { return operation_.key; }
  uint64_t urgency() const { return operation_.urgency; }
  bool is_early() const { return braid::is_early(operation_); }
  bool is_local() const { return operation_.ring->nodes == 1; }
  // Those of this loop, in the order of their numbers.
  std::vector<UnitRun>& units() { return units_; }

  bool is_ready() const { return is_ready_; }
  // All nodes that this one sends to take chunks from now on. Units are begun by the engine, or by
  // the first chunk that comes.
  void set_ready() { is_ready_ = true; }
  ChunkVerdict accept(NodeId from, const proto::ChunkHeader& header,
                      std::span<const uint8_t> payload);
  // The same piece by piece: see ChunkSink.
  ChunkIntake intake(NodeId from, const proto::ChunkHeader& header);
  void fold(NodeId from, const proto::ChunkHeader& header, uint32_t offset,
            std::span<const uint8_t> piece);
  void on_taken(NodeId from, const proto::ChunkHeader& header);
  // Whether work() has to be called, from set_ready() on, until nothing is left: it begins units,
  // and reduces or copies what stays on this node.
  bool has_work() const { return is_local() || operation_.exchange != nullptr; }
  // About so many bytes of it, which are taken off `bytes_left`. True: nothing is left.
  bool work(uint64_t& bytes_left);

  // The result is final and nobody needs the inputs.
  bool is_done() const;
  // Moreover every chunk that was sent from the result is acknowledged.
  bool is_retired() const { return is_done() && sends_left_ == 0; }
  // The engine knows it no more, and it lets go of the job's memory. What others still wait for of
  // a direct operation lies aside.
  void retire();
  // The operation is over: its chunks have no bytes any more, and the engine isn't told of
  // anything.
  void abandon();
  bool is_abandoned() const { return host_ == nullptr; }

  std::span<const uint8_t> payload_of(const OutgoingChunk& chunk) override;
  void on_chunk_settled(const OutgoingChunk& chunk, bool acknowledged) override;
  void on_step_ended(uint32_t unit, uint32_t segment, uint32_t chunk) override;

  // For its units.
  const Operation& operation() const { return operation_; }
  const Route& route() const { return route_; }
  const SegmentRoute& segment_route(uint32_t segment) const { return route_.segments[segment]; }
  NodeId member(uint32_t place) const { return operation_.ring->members[place]; }
  const Partition& partition() const { return partition_; }
  bool is_reduced() const;  // are inputs added?
  uint8_t* result(const Extent& extent) { return operation_.result + extent.offset; }
  // Into the result: this node's own bytes, where nothing is added, and such as have come.
  void copy_own(const ChunkPosition& position);
  void store(const ChunkPosition& position, const uint8_t* bytes);
  // Where store() puts them; nullptr: in several pieces.
  uint8_t* place_of(const ChunkPosition& position);
  // The bytes that an exchange sends, as one piece.
  void read_input(const ChunkPosition& position, uint8_t* out) const;
  OperationHost& host() { return *host_; }
  Contribution& contribution() { return contribution_; }
  Hop* hop() const { return operation_.hop.get(); }
  OwnerStep* step() { return step_; }  // nullptr: a sum is final as it is
  std::shared_ptr<StepListener> listener() { return shared_from_this(); }
  Store store() const { return store_; }  // for the local inputs alone
  std::vector<const uint8_t*>& operands() { return operands_; }
  // With a Hop: room for so many bytes, until the next call.
  std::span<uint8_t> scratch(uint64_t bytes);
  // Is the chunk sent from where the trainer put it? Then its bytes are in one piece.
  const uint8_t* input_to_send(proto::Phase phase, const ChunkPosition& position) const;
  void submit(const UnitRun& unit, proto::Phase phase, Encoding encoding,
              const ChunkPosition& position, uint32_t to, uint32_t bytes);
  void on_unit_finished(std::optional<uint32_t> stream);
  // A chunk of so many bytes was taken.
  void count_carried(uint64_t bytes);

  // The engine's notes: has on_done been told; is this in the list of those to look at?
  bool was_done_told = false;
  bool is_listed = false;

 private:
  void count_sends(uint32_t unit);
  bool needs_acknowledgements() const;
  proto::AckTime ack_time(proto::Phase phase) const;
  double carried_per_byte() const;
  UnitRun* find_unit(uint32_t unit);
  ChunkPosition position_of(uint32_t unit, uint32_t segment, uint32_t chunk) const {
    return {segment, chunk, partition_.chunk(unit, segment, chunk)};
  }
  // The place of a chunk that this node sends. Chunks of an exchange are counted by their receiver.
  ChunkPosition position_of(const proto::ChunkHeader& sent) const {
    const uint32_t first = operation_.exchange == nullptr ? 0 : operation_.ring->nodes;
    return position_of(sent.unit, first + sent.segment, sent.chunk);
  }
  // A chunk that has come, and what it is taken for.
  struct IncomingChunk {
    UnitRun* unit;
    ChunkPosition position;
    bool is_sum;
  };
  bool is_of_this(const proto::ChunkHeader& header) const;
  std::optional<IncomingChunk> find_incoming(NodeId from, const proto::ChunkHeader& header);
  std::optional<uint32_t> incoming_segment(NodeId from, const proto::ChunkHeader& header) const;
  ChunkVerdict accept_direct(NodeId from, const proto::ChunkHeader& header,
                             std::span<const uint8_t> payload);

  Operation operation_;
  const Route& route_;
  const Partition partition_;
  const uint32_t io_loops_;
  OperationHost* host_;
  KeptLinks links_;
  LocalInputs inputs_;
  Contribution& contribution_;
  AverageStep average_;
  OwnerStep* step_ = nullptr;
  Store store_ = Store::Cached;
  std::vector<const uint8_t*> operands_;  // kept, so that a chunk allocates nothing
  std::vector<float> scratch_;            // with a Hop; kept for the same reason
  std::vector<UnitRun> units_;
  uint32_t first_unit_ = 0;  // of this loop; the others follow at distances of io_loops

  bool is_ready_ = false;
  bool is_aborted_ = false;
  double carried_per_byte_ = 0;  // see EngineCounters
  uint64_t bytes_taken_ = 0;
  uint64_t units_left_ = 0;  // that are not finished
  uint64_t sends_left_ = 0;  // chunks from the result or from inputs that are not yet acknowledged;
                             // never 0 again once a link was lost
  size_t work_unit_ = 0;     // one node: how far the work has come
};

}  // namespace braid
