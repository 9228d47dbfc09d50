// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/bitmap.h"
#include "engine/partition.h"
#include "proto/chunk.h"
#include "timeline/timeline_event.h"

namespace braid {

class OperationRun;

// A chunk of a unit, and where it lies.
struct ChunkPosition {
  uint32_t segment = 0;
  uint32_t chunk = 0;
  Extent extent;
};

// The sums of one unit on this node: which parts have come, and what they add up to. Others' parts
// are added to this node's own in the order of the route; a part that comes before its turn is put
// aside. I/O loop only; lives in its UnitRun.
class UnitSums {
 public:
  UnitSums(OperationRun& run, uint32_t unit);

  // Chunks that must still come, or be made, until the result is final here: one for each part and
  // chunk, for each chunk that this node owns, and for each that others own.
  uint64_t parts_left() const { return parts_left_; }
  uint64_t steps_left() const { return steps_left_; }
  uint64_t sums_left() const { return sums_left_; }
  uint32_t chunks_max() const { return chunks_max_; }  // of any segment

  bool has_part(const ChunkPosition& position, size_t part) const {
    return bits_.test(part_bit(position, part));
  }
  // Every part that this node adds has come.
  bool is_summed(const ChunkPosition& position) const;
  // Takes a part that has not come yet; `encoding` is Plain exactly where there is no Hop. accept()
  // says false of bytes that are no part of this chunk, else decodes them; add() makes them count.
  // `bytes`: nullptr if the part was decoded, or folded.
  bool accept(const ChunkPosition& position, size_t part, Encoding encoding,
              std::span<const uint8_t> payload);
  void add(const ChunkPosition& position, size_t part, const uint8_t* bytes);
  // Whether a part may be folded while it comes: it is the first one, so the result is made from
  // the inputs and from it alone, and making it again changes nothing. There is no Hop.
  bool may_fold(const ChunkPosition& position, size_t part) const;
  // Makes the result of the chunk's bytes that begin at `offset`.
  void fold(const ChunkPosition& position, uint32_t offset, std::span<const uint8_t> piece);

  // The result holds the chunk's sum: the owner's step has ended, or the sum has come.
  bool is_final(const ChunkPosition& position) const { return bits_.test(sum_bit(position)); }
  void end_step(const ChunkPosition& position);
  void end_sum(const ChunkPosition& position);

  // Puts this node's own bytes of a chunk that starts here into the result. Once only, then false:
  // when a chunk must be sent again its extent may hold the final bytes. The receiver has the
  // partial ones then, for the final ones are made from them, and drops whatever it is sent.
  bool make_own(const ChunkPosition& position);
  // This node's own part, where all add all parts at once: the result will hold the sum while
  // others still wait for the part.
  uint8_t* own_part(const ChunkPosition& position);
  // With a Hop: reads what this node gives, as it is added here.
  void read_own(const ChunkPosition& position, uint8_t* out);
  // What was put aside is not needed any more.
  void drop_aside() { aside_.reset(); }

 private:
  uint64_t part_bit(const ChunkPosition& position, size_t part) const;
  uint64_t sum_bit(const ChunkPosition& position) const;
  size_t parts_in_turn(const ChunkPosition& position) const;
  void add_in_turn(const ChunkPosition& position, size_t turn, const uint8_t* bytes);
  void add_all(const ChunkPosition& position, size_t last, const uint8_t* bytes);
  void reduce_own(const ChunkPosition& position);
  uint8_t* aside(const ChunkPosition& position, size_t row);

  OperationRun* run_;
  uint32_t unit_;
  uint32_t chunks_max_;
  uint64_t parts_left_ = 0;
  uint64_t steps_left_ = 0;
  uint64_t sums_left_ = 0;
  // Rows of chunks: for each part whether it has come; for each segment whether the result holds
  // its sum; and, of those that start here, whether it holds this node's part.
  Bitmap bits_;
  // Made when it is needed. Parts that came before their turn, then this node's own, where all are
  // added at once; a row holds a segment.
  std::unique_ptr<uint8_t[]> aside_;
  uint64_t aside_stride_ = 0;
};

// The elements of a chunk whose bytes these are.
inline std::span<float> elements(uint8_t* bytes, const ChunkPosition& position) {
  return {reinterpret_cast<float*>(bytes), position.extent.bytes / sizeof(float)};
}

// For the timeline: what a unit of `run` has done since then.
TimelineEvent span_until_now(const OperationRun& run, uint32_t unit, SpanKind kind,
                             uint64_t begin_ns);

}  // namespace braid
