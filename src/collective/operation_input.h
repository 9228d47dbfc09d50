// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace braid {

// One local rank's input of an operation. A single tensor's lies in one piece; where a plan has
// merged tensors each has its own place in the rank's arena. Pieces hold whole elements and come in
// the operation's order.
class OperationInput {
 public:
  OperationInput(const uint8_t* data) {
    append(data, UINT64_MAX);
  }  // NOLINT: one piece, implicitly
  OperationInput() = default;

  // The next `bytes` of the operation lie at `data`. What continues the piece before is one with
  // it.
  void append(const uint8_t* data, uint64_t bytes);

  // Where the byte at `offset` lies, and how many from there on lie in one piece (`bytes_max` at
  // most).
  const uint8_t* at(uint64_t offset, uint64_t bytes_max, uint64_t& contiguous_bytes) const;
  // Where these bytes lie, or nullptr if they are not in one piece.
  const uint8_t* find(uint64_t offset, uint64_t bytes) const;

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
