// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/peer.h"
#include "engine/bitmap.h"
#include "engine/partition.h"
#include "proto/chunk.h"
#include "timeline/timeline_event.h"

namespace braid {

class OperationRun;

enum class ChunkVerdict : uint8_t { Taken, Duplicate, Malformed };

// A chunk of a unit, and where it lies.
struct ChunkPosition {
  uint32_t segment = 0;
  uint32_t chunk = 0;
  Extent extent;
};

// How far a node has come with one unit. Chunks go their way each by itself, so the state is that
// of those that are furthest behind.
//
//   Waiting → Reducing    begin(): all that this node sends to are ready, and a stream is free or a
//                         chunk has come. What comes before is added and held.
//   Reducing → Stepping   every part that this node adds has come
//   Stepping → Gathering  the owner's step has ended for all chunks that this node owns
//   Gathering → Finished  every sum that others own has come
enum class UnitState : uint8_t { Waiting, Reducing, Stepping, Gathering, Finished };

// One unit of an operation: which chunks have come, what to do with the next one, what to send on.
// A node adds the others' parts to its own in the order of its route and sends the sum on, to the
// next node as a part (phase ReduceScatter) or, at the owner and after its step, to the others as
// the result (phase AllGather). A part that comes before its turn is put aside. I/O loop only.
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
  // The owner's step has ended.
  void on_final(const ChunkPosition& position);
  // Makes the next chunks that stay on this node, of up to `bytes_left` bytes, and takes them off.
  // True when all are made.
  bool work(uint64_t& bytes_left);

  std::span<const uint8_t> bytes_to_send(proto::Phase phase, const ChunkPosition& position);
  // Its bytes are not asked for any more.
  void on_settled(const ChunkPosition& position);

 private:
  uint64_t part_bit(const ChunkPosition& position, size_t part) const;
  uint64_t sum_bit(const ChunkPosition& position) const;
  uint64_t prepared_bit(const ChunkPosition& position) const;
  size_t parts_in_turn(const ChunkPosition& position) const;
  bool is_summed(const ChunkPosition& position) const;

  void begin_segment(uint32_t segment);
  void begin_if_ready();
  bool add_plain(const ChunkPosition& position, size_t part, std::span<const uint8_t> payload);
  bool add_decoded(const ChunkPosition& position, size_t part, Encoding encoding,
                   std::span<const uint8_t> payload);
  void note_part(const ChunkPosition& position, size_t part);
  void add_in_turn(const ChunkPosition& position, size_t turn, const uint8_t* bytes);
  void add_all(const ChunkPosition& position, size_t last, const uint8_t* bytes);
  void on_summed(const ChunkPosition& position);
  void prepare(const ChunkPosition& position);
  void keep_own_part(const ChunkPosition& position);
  uint8_t* aside(const ChunkPosition& position, size_t row);
  void send_part(const ChunkPosition& position);
  void send_sum(const ChunkPosition& position);
  uint32_t bytes_on_wire(proto::Phase phase, const ChunkPosition& position);
  Encoding encoding_of(proto::Phase phase, const ChunkPosition& position) const;
  void encode(proto::Phase phase, const ChunkPosition& position);
  void read_own_part(const ChunkPosition& position, uint8_t* out);
  std::span<float> elements(uint8_t* bytes, const ChunkPosition& position) const;
  uint8_t* encoded(proto::Phase phase, const ChunkPosition& position, uint32_t*& length);
  const uint8_t* gathered(const ChunkPosition& position);
  void finish_if_complete();
  TimelineEvent span_until_now(SpanKind kind, uint64_t begin_ns) const;
  void note_unit() const;
  void note_reduce(const ChunkPosition& position, uint64_t begin_ns) const;

  OperationRun* run_;
  uint32_t unit_;  // its number in the operation
  bool is_touched_ = false;
  bool has_begun_ = false;
  std::optional<uint32_t> stream_;  // that it holds
  bool is_finished_ = false;
  uint64_t begun_ns_ = 0;  // for the timeline
  uint32_t chunks_max_;    // of any segment
  uint32_t next_work_ = 0;
  // Chunks that must still come, or be made, until the result is final here: one for each part and
  // chunk, for each chunk that this node owns, and for each that others own.
  uint64_t parts_left_ = 0;
  uint64_t steps_left_ = 0;
  uint64_t sums_left_ = 0;
  // Rows of chunks: for each part whether it has come; for each segment whether the result holds
  // its sum; and, of those that start here, whether it holds this node's part.
  Bitmap bits_;

  // Made when they are needed. Parts that came before their turn, then this node's own, where all
  // are added at once; a row holds a segment.
  std::unique_ptr<uint8_t[]> aside_;
  uint64_t aside_stride_ = 0;
  // An exchange's chunks whose bytes lie in several pieces, from the first sending until they are
  // settled. By segment and chunk.
  std::vector<std::unique_ptr<uint8_t[]>> gathered_;
  // With a Hop, what was encoded: a position for each part and for each sum that is sent.
  std::unique_ptr<uint8_t[]> encoded_;
  std::vector<uint32_t> encoded_lengths_;
  uint32_t encoded_stride_ = 0;
};

}  // namespace braid
