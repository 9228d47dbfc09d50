// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/peer.h"
#include "engine/link.h"
#include "engine/unit_sums.h"
#include "engine/wire_chunks.h"

namespace braid {

class OperationRun;

enum class ChunkVerdict : uint8_t { Taken, Duplicate, Malformed };

// How far a node has come with one unit. Chunks go their way each by itself, so the state is that
// of those that are furthest behind.
//
//   Waiting → Reducing    begin(): all that this node sends to are ready, and a stream is free or a
//                         chunk has come. What comes before is added and held.
//   Reducing → Stepping   every part that this node adds has come
//   Stepping → Gathering  the owner's step has ended for all chunks that this node owns
//   Gathering → Finished  every sum that others own has come
enum class UnitState : uint8_t { Waiting, Reducing, Stepping, Gathering, Finished };

// One unit of an operation: when it begins, what to do with the next chunk, what to send on.
// A node adds the others' parts to its own in the order of its route and sends the sum on, to the
// next node as a part (phase ReduceScatter) or, at the owner and after its step, to the others as
// the result (phase AllGather). I/O loop only.
class UnitRun {
 public:
  UnitRun(OperationRun& run, uint32_t unit);

  uint32_t number() const { return unit_; }
  UnitState state() const;
  bool has_begun() const { return has_begun_; }
  bool is_touched() const { return is_touched_; }  // a chunk has come
  // Does it wait here for a stream until it begins?
  bool waits_for_stream() const;
  void begin();

  // `position` exists. take_part: from phase ReduceScatter, or Direct. `encoding` is Plain exactly
  // where there is no Hop; a sum's is Sum then.
  ChunkVerdict take_part(NodeId from, const ChunkPosition& position, Encoding encoding,
                         std::span<const uint8_t> payload);
  ChunkVerdict take_sum(NodeId from, const ChunkPosition& position,
                        std::span<const uint8_t> payload);
  // The same piece by piece, where there is no Hop: see ChunkSink. Whole also if the chunk would
  // not be taken.
  ChunkIntake part_intake(NodeId from, const ChunkPosition& position) const;
  ChunkIntake sum_intake(NodeId from, const ChunkPosition& position) const;
  void fold(const ChunkPosition& position, uint32_t offset, std::span<const uint8_t> piece) {
    sums_.fold(position, offset, piece);
  }
  void on_folded(const ChunkPosition& position);
  void on_stored(const ChunkPosition& position);
  // The owner's step has ended.
  void on_final(const ChunkPosition& position);
  // Makes the next chunks that stay on this node, of up to `bytes_left` bytes, and takes them off.
  // True when all are made.
  bool work(uint64_t& bytes_left);

  std::span<const uint8_t> bytes_to_send(proto::Phase phase, const ChunkPosition& position);
  // Its bytes are not asked for any more.
  void on_settled(const ChunkPosition& position) { wire_.on_settled(position); }

 private:
  void begin_segment(uint32_t segment);
  void begin_if_ready();
  std::optional<size_t> part_from(NodeId from, const ChunkPosition& position) const;
  void on_part(const ChunkPosition& position, size_t part, const uint8_t* bytes);
  ChunkVerdict look_at_sum(NodeId from, const ChunkPosition& position) const;
  void prepare(const ChunkPosition& position);
  void on_summed(const ChunkPosition& position);
  void send_own_part(const ChunkPosition& position);
  void send_part(const ChunkPosition& position);
  void send_sum(const ChunkPosition& position);
  void finish_if_complete();
  void note_unit() const;

  OperationRun* run_;
  uint32_t unit_;  // its number in the operation
  bool is_touched_ = false;
  bool has_begun_ = false;
  std::optional<uint32_t> stream_;  // that it holds
  bool is_finished_ = false;
  uint64_t begun_ns_ = 0;  // for the timeline
  uint32_t next_work_ = 0;
  UnitSums sums_;
  WireChunks wire_;
};

}  // namespace braid
