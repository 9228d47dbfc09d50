// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/assert.h"

namespace braid {

// One local rank's input of an operation: bytes that follow one another there and lie in one or
// several places in memory. A single tensor's lies in one piece; where a plan has merged tensors
// each has its own place in the rank's arena. Pieces hold whole elements and come in the
// operation's order.
class OperationInput {
 public:
  OperationInput(const uint8_t* data) {
    append(data, UINT64_MAX);
  }  // NOLINT: one piece, implicitly
  OperationInput() = default;

  // The next `bytes` of the operation lie at `data`. What continues the piece before is one with
  // it.
  void append(const uint8_t* data, uint64_t bytes) {
    if (bytes == 0) return;
    const uint64_t begin = this->bytes();
    BRAID_ASSERT(bytes <= UINT64_MAX - begin, "the bytes of all pieces were checked");
    if (!pieces_.empty() && pieces_.back().data + (begin - pieces_.back().begin) == data) {
      pieces_.back().end += bytes;
      return;
    }
    pieces_.push_back({begin + bytes, begin, data});
  }

  uint64_t bytes() const { return pieces_.empty() ? 0 : pieces_.back().end; }

  // Where the byte at `offset` lies, and how many from there on lie in one piece (`bytes_max` at
  // most).
  const uint8_t* at(uint64_t offset, uint64_t bytes_max, uint64_t& contiguous_bytes) const {
    const auto piece =
        pieces_.size() == 1
            ? pieces_.begin()
            : std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                               [](uint64_t wanted, const Piece& one) { return wanted < one.end; });
    BRAID_ASSERT(piece != pieces_.end() && offset < piece->end,
                 "an operation ends with its pieces");
    contiguous_bytes = std::min(bytes_max, piece->end - offset);
    return piece->data + (offset - piece->begin);
  }

  // Where these bytes lie, or nullptr if they are not in one piece.
  const uint8_t* find(uint64_t offset, uint64_t bytes) const {
    uint64_t contiguous_bytes = 0;
    const uint8_t* data = at(offset, bytes, contiguous_bytes);
    return contiguous_bytes == bytes ? data : nullptr;
  }

  bool operator==(const uint8_t* data) const {
    return pieces_.size() == 1 && pieces_.front().data == data;
  }

 private:
  struct Piece {
    uint64_t end = 0;  // in the operation
    uint64_t begin = 0;
    const uint8_t* data = nullptr;
  };
  std::vector<Piece> pieces_;
};

}  // namespace braid
