// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/pieces.h"

namespace braid {

struct Extent;
struct Ring;

// How many elements a rank gives to each rank and gets from each one, itself among them: by rank,
// as many as the world has.
struct Splits {
  std::vector<uint64_t> to;
  std::vector<uint64_t> from;
};

// The ranks of all nodes, in the order of their blocks.
std::vector<uint32_t> ranks_in_ring_order(const Ring& ring);

// What an all-to-all, a gather or a scatter moves: between this node and each node of the ring,
// itself among them, one stream of bytes in either direction. The stream from node a to node b
// holds, for each rank of b (ascending), what each rank of a (ascending) has for it. Nothing is
// added up, so all dtypes are bytes here. Built once for an operation; I/O loops then read it and
// write to disjoint extents of its memory.
class Exchange {
 public:
  // One of this node's ranks. In its input lies what it gives to rank 0, 1, …; in its result what
  // it gets from them, one after the other. What one local rank gives to another is what the other
  // expects.
  struct LocalRank {
    const Splits* splits = nullptr;
    const uint8_t* input = nullptr;
    uint8_t* result = nullptr;
  };

  // `ranks`: this node's, ascending.
  Exchange(const Ring& ring, std::span<const LocalRank> ranks, uint64_t element_bytes);

  uint32_t self() const { return self_; }
  uint32_t nodes() const { return static_cast<uint32_t>(to_.size()); }
  // By place in the ring.
  uint64_t bytes_to(uint32_t place) const { return to_[place].bytes(); }
  uint64_t bytes_from(uint32_t place) const { return from_[place].bytes(); }

  // Extents are of the stream to, or from, that place.

  // Where the bytes for it lie, unchanged until the operation is done; nullptr: in several pieces.
  const uint8_t* find(uint32_t to, const Extent& extent) const;
  void read(uint32_t to, const Extent& extent, uint8_t* out) const;
  void write(uint32_t from, const Extent& extent, const uint8_t* bytes) const;
  // From this node to itself.
  void copy_own(const Extent& extent) const;

 private:
  const uint32_t self_;
  std::vector<Pieces<const uint8_t>> to_;
  std::vector<Pieces<uint8_t>> from_;
};

}  // namespace braid
