// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/operation.h"

namespace braid {

// A place in an operation's result; for an all-reduce and a reduce-scatter also in each input. Of
// an exchange, a place in a stream.
struct Extent {
  uint64_t offset = 0;  // bytes
  uint64_t bytes = 0;
  bool operator==(const Extent&) const = default;
};

// How an operation is cut: into units, each unit into one segment per node of the ring (segment s
// is owned by node s) or as many as its route has, each segment into chunks. Arithmetic alone, and
// the same on all nodes: from the operation, the ring and the two sizes. What is direct is one unit
// of one segment.
//
// all-reduce: a unit is a range of the tensor, its segments are nearly equal parts of it.
//
// all-reduce with fixed owners: a unit is what the operation holds of one stripe of each node, in
// one of its ranges; segment s is what it holds of node s's. So the first and the last units of a
// range may have segments that are shorter, or empty. The size of a unit changes nothing.
//
// broadcast: a unit is a range of the tensor; it is the root's segment, the others are empty.
//
// all-gather, reduce-scatter: a segment is a range of the blocks of the node's ranks; each unit
// takes its share of every node's blocks, so that all nodes send in every unit.
//
// gather, scatter, all-to-all: a segment is what comes from a node, or goes to one (see
// exchange_route); each unit takes the next piece of every such stream. A stream is cut by its own
// length alone, since its two nodes know only that one.
//
// Every cut lies a multiple of 64 bytes after the start of what is cut, or between two stripes; so
// no element is ever divided. What is too small for that leaves segments empty; an empty segment
// has no chunks, and an operation of no elements no units.
class Partition {
 public:
  // The operation must fit into memory and its ring must be complete. `unit_bytes` is the most that
  // a unit of an all-reduce or broadcast holds, and about the most otherwise; `chunk_bytes` the
  // most that a chunk holds. Both at least 64. With a Hop both are meant as bytes on the wire.
  Partition(const Operation& operation, uint64_t unit_bytes, uint32_t chunk_bytes);

  uint32_t segments() const { return segments_; }  // of each unit
  uint32_t units() const { return units_; }

  // The part of `unit` that node `segment` owns.
  Extent segment(uint32_t unit, uint32_t segment) const;
  // How many chunks it is cut into.
  uint32_t chunks(uint32_t unit, uint32_t segment) const;
  // The most chunks that a segment of the unit has.
  uint32_t chunks_max(uint32_t unit) const;
  Extent chunk(uint32_t unit, uint32_t segment, uint32_t chunk) const;
  // The most bytes that a chunk of the unit has.
  uint64_t chunk_bytes_max(uint32_t unit) const;

 private:
  // Bytes of an operation with fixed owners, which follow one another in the set.
  struct Range {
    uint32_t first_unit = 0;
    uint64_t offset = 0;  // in the operation
    uint64_t bytes = 0;
    uint64_t before = 0;  // bytes of its first unit's stripes that lie before it in the set
  };

  void cut_at_stripes(const FixedOwners& owners, uint64_t element_bytes);
  Extent part_of_stripe(uint32_t unit, uint32_t segment) const;
  void cut_streams(const Exchange& exchange, uint64_t unit_bytes);
  uint64_t stream_unit_bytes(uint64_t bytes) const;
  uint64_t chunk_length(uint64_t segment_bytes) const;
  uint64_t before_the_wire(uint64_t bytes) const;

  const Collective collective_;
  const bool is_direct_;
  const uint32_t segments_;
  const uint32_t root_;
  const uint32_t wire_chunk_bytes_;
  const uint64_t chunk_bytes_;  // what they are decoded
  uint32_t units_ = 0;
  uint64_t total_bytes_ = 0;
  uint64_t unit_bytes_ = 0;  // length of a unit, all-reduce and broadcast; of its pieces, exchange
  std::vector<Range> ranges_;  // all-reduce with fixed owners
  // Start of each node's blocks, and the end of the last; all-gather and reduce-scatter.
  std::vector<uint64_t> node_offsets_;
  std::vector<uint64_t> stream_bytes_;  // of each segment of an exchange
};

// The I/O loop that a unit belongs to, on every node: (mix64(tensor) + step + unit) mod io_loops.
uint32_t loop_of_unit(const OperationKey& key, uint32_t unit, uint32_t io_loops);

}  // namespace braid
