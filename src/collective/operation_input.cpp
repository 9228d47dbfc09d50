// SPDX-License-Identifier: Apache-2.0
#include "collective/operation_input.h"

#include <algorithm>

#include "base/assert.h"

namespace braid {

void OperationInput::append(const uint8_t* data, uint64_t bytes) {
  if (bytes == 0) return;
  const uint64_t begin = pieces_.empty() ? 0 : pieces_.back().end;
  if (!pieces_.empty() && pieces_.back().data + (begin - pieces_.back().begin) == data) {
    pieces_.back().end += bytes;
    return;
  }
  pieces_.push_back({begin + bytes, begin, data});
}

const uint8_t* OperationInput::at(uint64_t offset, uint64_t bytes_max,
                                  uint64_t& contiguous_bytes) const {
  const auto piece =
      pieces_.size() == 1
          ? pieces_.begin()
          : std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                             [](uint64_t wanted, const Piece& one) { return wanted < one.end; });
  BRAID_ASSERT(piece != pieces_.end(), "an operation ends with its inputs");
  contiguous_bytes = std::min(bytes_max, piece->end - offset);
  return piece->data + (offset - piece->begin);
}

const uint8_t* OperationInput::find(uint64_t offset, uint64_t bytes) const {
  uint64_t contiguous_bytes = 0;
  const uint8_t* data = at(offset, bytes, contiguous_bytes);
  return contiguous_bytes == bytes ? data : nullptr;
}

}  // namespace braid
