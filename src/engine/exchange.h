// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/splits.h"

namespace braid {

struct Extent;
struct Ring;

// What an all-to-all, a gather or a scatter moves: between this node and each node of the ring,
// itself among them, one stream of bytes in either direction. The stream from node a to node b
// holds, for each rank of b (ascending), what each rank of a (ascending) has for it. Nothing is
// added up, so all dtypes are bytes here.
//
// Built while the node's ranks submit, then placed; I/O loops then read it and write to disjoint
// extents of its memory. A node of n ranks among N has n · N pieces of memory, so nothing is kept
// for a piece: a rank that submits adds what it has to sums, which takes N additions, and who needs
// bytes finds their place from the sums, in log(N) steps and n more, or n and as many as their node
// has ranks.
class Exchange {
 public:
  Exchange(const Ring& ring, uint64_t element_bytes);

  // One of this node's ranks, by its place among them: each once, in any order. Parts lie in its
  // input as `splits` says.
  void add(uint32_t local_rank, std::shared_ptr<const Splits> splits, const uint8_t* input);
  // When all are there, and agree about what they give to each other: where each one's result lies.
  void place(std::span<uint8_t* const> results);

  uint32_t self() const { return self_; }
  uint32_t nodes() const { return static_cast<uint32_t>(first_block_.size() - 1); }
  // nullptr: not added yet.
  const Splits* splits_of(uint32_t local_rank) const {
    return local_ranks_[local_rank].splits.get();
  }

  // By place in the ring.

  std::span<const uint32_t> ranks_of(uint32_t place) const;  // ascending
  uint64_t bytes_to(uint32_t place) const;
  uint64_t bytes_from(uint32_t place) const { return from_[place]; }

  // Extents are of the stream to, or from, that place.

  // Where the bytes for it lie, unchanged until the operation is done; nullptr: in several pieces.
  const uint8_t* find(uint32_t to, const Extent& extent) const;
  void read(uint32_t to, const Extent& extent, uint8_t* out) const;
  void write(uint32_t from, const Extent& extent, const uint8_t* bytes) const;
  // Where write() puts them; nullptr: in several pieces.
  uint8_t* place_of(uint32_t from, const Extent& extent) const;
  // From this node to itself.
  void copy_own(const Extent& extent) const;

 private:
  struct LocalRank {
    std::shared_ptr<const Splits> splits;
    const uint8_t* input = nullptr;
    uint8_t* result = nullptr;
    std::vector<uint64_t> from;  // bytes from all ranks of a node, by place
  };

  uint64_t bytes_before(uint32_t block) const;
  const uint8_t* input_of(uint32_t giver, uint32_t block) const;
  uint8_t* result_of(uint32_t receiver, uint32_t block) const;
  template <typename Take>
  void for_parts_to(uint32_t to, const Extent& extent, Take take) const;
  template <typename Take>
  void for_places_from(uint32_t from, const Extent& extent, Take take) const;

  const uint32_t self_;
  const uint64_t element_bytes_;
  const std::vector<uint32_t> ranks_;        // in the order of their blocks
  const std::vector<uint32_t> first_block_;  // by place in the ring, and the end
  std::vector<LocalRank> local_ranks_;       // ascending
  std::vector<uint64_t> to_ends_;  // by block: bytes for it from all local ranks; once placed, and
                                   // for all blocks before
  std::vector<uint64_t> from_;     // by place in the ring
};

}  // namespace braid
