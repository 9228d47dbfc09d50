// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "operation.h"

namespace braid::client {

// A piece of 8 MiB takes a GPU 0.3 ms to copy, and a network of 25 Gbit/s 2.7 ms to carry: so
// copies and network overlap, and what each piece costs by itself (about 0.1 ms) is little.
inline constexpr uint64_t kDevicePieceBytes = 8 << 20;

// The same part of each block of a tensor: `rows` times `width` bytes, `pitch` bytes apart, the
// first one `offset` bytes after the tensor's begin. In staging memory they lie side by side.
struct Rows {
  uint64_t rows = 0;
  uint64_t width = 0;
  uint64_t pitch = 0;
  uint64_t offset = 0;

  uint64_t bytes() const { return rows * width; }
};

struct Piece {
  uint64_t count = 0;  // as braid_operation has it
  Rows input;
  Rows result;
};

// How an operation on device memory is cut into operations that the daemon runs one after the
// other: each takes the same elements of every rank's block, so the pieces' results, put side by
// side block by block, are the operation's. All ranks cut alike, whatever each of them gives and
// gets. In one piece are: tensors that are not dynamic (planned ones are cut by their plan),
// all-to-alls with splits, whose parts only their two ranks know, and what is small.
class Pieces {
 public:
  Pieces(const Request& request, Rank rank, bool has_splits, bool is_dynamic);
  // One piece, which is cut already.
  explicit Pieces(const Piece& piece) : only_(piece) {}

  uint32_t count() const { return count_; }
  Piece operator[](uint32_t index) const;

 private:
  Rows rows(uint64_t blocks, uint64_t bytes, uint64_t first, uint64_t elements) const;

  std::optional<Piece> only_;
  uint64_t element_bytes_ = 1;
  uint64_t elements_ = 0;           // of a block
  uint64_t elements_of_piece_ = 0;  // of a block
  uint32_t count_ = 1;
  uint64_t input_bytes_ = 0;
  uint64_t result_bytes_ = 0;
  uint64_t input_blocks_ = 1;
  uint64_t result_blocks_ = 1;
};

}  // namespace braid::client
