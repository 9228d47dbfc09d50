// SPDX-License-Identifier: Apache-2.0
#include "device/pieces.h"

#include <algorithm>

namespace braid::client {
namespace {

// So that pieces begin where copies are fast.
constexpr uint64_t kElementsMultiple = 128;

bool has_input_blocks(Collective collective) {
  return collective == Collective::ReduceScatter || collective == Collective::Scatter ||
         collective == Collective::AllToAll;
}

bool has_result_blocks(Collective collective) {
  return collective == Collective::AllGather || collective == Collective::Gather ||
         collective == Collective::AllToAll;
}

}  // namespace

Pieces::Pieces(const Request& request, Rank rank, bool has_splits, bool is_dynamic)
    : element_bytes_(element_bytes(request.dtype)),
      elements_(request.count),
      elements_of_piece_(request.count),
      input_bytes_(request.input_bytes),
      result_bytes_(request.result_bytes) {
  if (request.collective == Collective::Barrier || has_splits) {
    elements_ = elements_of_piece_ = 0;
    return;
  }
  if (has_input_blocks(request.collective)) input_blocks_ = rank.world_size;
  if (has_result_blocks(request.collective)) result_blocks_ = rank.world_size;
  if (!is_dynamic) return;
  const uint64_t bytes_of_column = std::max(input_blocks_, result_blocks_) * element_bytes_;
  const uint64_t fitting =
      kDevicePieceBytes / bytes_of_column / kElementsMultiple * kElementsMultiple;
  elements_of_piece_ = std::min(elements_, std::max(fitting, kElementsMultiple));
  if (elements_ == 0) return;
  count_ = static_cast<uint32_t>((elements_ + elements_of_piece_ - 1) / elements_of_piece_);
}

Piece Pieces::operator[](uint32_t index) const {
  if (only_) return *only_;
  const uint64_t first = index * elements_of_piece_;
  const uint64_t elements = std::min(elements_of_piece_, elements_ - first);
  return {elements, rows(input_blocks_, input_bytes_, first, elements),
          rows(result_blocks_, result_bytes_, first, elements)};
}

// The part of a tensor of `bytes`; 0: this rank has none.
Rows Pieces::rows(uint64_t blocks, uint64_t bytes, uint64_t first, uint64_t elements) const {
  if (bytes == 0) return {};
  if (count_ == 1) return {1, bytes, bytes, 0};
  return {blocks, elements * element_bytes_, elements_ * element_bytes_, first * element_bytes_};
}

}  // namespace braid::client
