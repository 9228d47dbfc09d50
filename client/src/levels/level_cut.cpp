// SPDX-License-Identifier: Apache-2.0
#include "levels/level_cut.h"

#include <algorithm>

namespace braid::client {
namespace {

// Pieces begin where NCCL and copies are fast.
constexpr uint64_t kElementsMultipleOfRank = 128;

DataType dtype_of(const DeviceRequest& request) {
  return static_cast<DataType>(request.operation.dtype);
}

bool is_integer(DataType dtype) {
  return dtype == DataType::Int32 || dtype == DataType::Int64 || dtype == DataType::Uint8;
}

}  // namespace

bool LevelCut::takes(const DeviceRequest& request) {
  switch (static_cast<Collective>(request.operation.collective)) {
    case Collective::AllReduce:
    case Collective::ReduceScatter:
      // An average of integers is rounded once, not once in each level.
      return static_cast<Reduction>(request.operation.reduction) != Reduction::Average ||
             !is_integer(dtype_of(request));
    case Collective::AllGather:
    case Collective::Broadcast:
      return true;
    default:
      return false;
  }
}

LevelCut::LevelCut(const DeviceRequest& request, LevelPlace place)
    : request_(request),
      place_(place),
      collective_(static_cast<Collective>(request.operation.collective)),
      element_bytes_(element_bytes(dtype_of(request))),
      elements_(request.operation.count) {
  const bool has_blocks =
      collective_ == Collective::AllGather || collective_ == Collective::ReduceScatter;
  // So many elements are of one piece of the operation across.
  uint64_t fitting = kDevicePieceBytes / element_bytes_;
  if (has_blocks) fitting /= place_.nodes;
  if (collective_ == Collective::AllReduce) fitting *= place_.node_ranks;
  const uint64_t multiple = kElementsMultipleOfRank * place_.node_ranks;
  elements_of_piece_ = std::max(fitting / multiple, uint64_t{1}) * multiple;
  if (elements_ != 0)
    count_ = static_cast<uint32_t>((elements_ + elements_of_piece_ - 1) / elements_of_piece_);
}

LevelCut::Range LevelCut::range(uint32_t index) const {
  const uint64_t first = index * elements_of_piece_;
  return {first, std::min(elements_of_piece_, elements_ - first)};
}

uint64_t LevelCut::scratch_bytes(uint32_t index) const {
  if (collective_ != Collective::ReduceScatter) return 0;
  return range(index).count * place_.nodes * element_bytes_;
}

LevelPiece LevelCut::piece(uint32_t index, CUdeviceptr scratch) const {
  const Range part = range(index);
  if (part.count == 0) return {};
  switch (collective_) {
    case Collective::Broadcast:
      return broadcast(part);
    case Collective::AllGather:
      return all_gather(part);
    case Collective::ReduceScatter:
      return reduce_scatter(part, scratch);
    default:
      return all_reduce(part);
  }
}

CUdeviceptr LevelCut::in_block(uint32_t rank, uint64_t element) const {
  if (!request_.result_of_rank.empty())
    return request_.result_of_rank[rank] + element * element_bytes_;
  return request_.result + (rank * elements_ + element) * element_bytes_;
}

Rows LevelCut::row(const Range& part) const {
  const uint64_t bytes = part.count * element_bytes_;
  return {1, bytes, bytes, part.first * element_bytes_};
}

// The last rank's block has what does not divide.
LevelPiece LevelCut::all_reduce(const Range& part) const {
  const uint64_t block = part.count / place_.node_ranks;
  const uint64_t rest = part.count % place_.node_ranks;
  const uint32_t last = place_.node_ranks - 1;
  const CUdeviceptr input = request_.input + part.first * element_bytes_;
  const CUdeviceptr result = request_.result + part.first * element_bytes_;
  const uint64_t block_bytes = block * element_bytes_;
  const uint64_t rest_at = place_.node_ranks * block_bytes;
  const uint64_t own_at = place_.local_rank * block_bytes;
  const Range own = {part.first + place_.local_rank * block,
                     block + (place_.local_rank == last ? rest : 0)};
  LevelPiece piece;
  if (block != 0) {
    piece.before.push_back({LocalStep::Kind::ReduceScatter, input, result + own_at, block, 0});
    piece.after.push_back({LocalStep::Kind::AllGather, result + own_at, result, block, 0});
  }
  if (rest != 0) {
    piece.before.push_back(
        {LocalStep::Kind::Reduce, input + rest_at, result + rest_at, rest, last});
    piece.after.push_back(
        {LocalStep::Kind::Broadcast, result + rest_at, result + rest_at, rest, last});
  }
  if (own.count != 0) {
    piece.across = AcrossStep{
        Collective::AllReduce,          own.count, 0, request_.result, request_.result, {},
        {own.count, row(own), row(own)}};
  }
  const uint64_t own_end = own_at + own.count * element_bytes_;
  piece.awaited = {{result, own_at}, {result + own_end, part.count * element_bytes_ - own_end}};
  return piece;
}

LevelPiece LevelCut::broadcast(const Range& part) const {
  const uint32_t root_node = request_.operation.root / place_.node_ranks;
  const uint32_t root_local = request_.operation.root % place_.node_ranks;
  const CUdeviceptr result = request_.result + part.first * element_bytes_;
  LevelPiece piece;
  if (place_.local_rank == root_local) {
    AcrossStep across;
    across.collective = Collective::Broadcast;
    across.count = part.count;
    across.root = root_node;
    across.input = request_.input;
    across.result = request_.result;
    const bool is_root = place_.node == root_node;
    const bool is_there = is_root && request_.input == request_.result;
    across.piece = {part.count, is_root ? row(part) : Rows(), is_there ? Rows() : row(part)};
    piece.across = std::move(across);
  } else {
    piece.awaited = {{result, part.count * element_bytes_}};
  }
  piece.after = {{LocalStep::Kind::Broadcast, result, result, part.count, root_local}};
  return piece;
}

LevelPiece LevelCut::all_gather(const Range& part) const {
  const uint64_t bytes = part.count * element_bytes_;
  // Where a node's blocks lie side by side, and the piece is all of them.
  const bool is_whole = part.count == elements_ && request_.result_of_rank.empty();
  LevelPiece piece;
  AcrossStep across;
  across.collective = Collective::AllGather;
  across.count = part.count;
  across.input = request_.input;
  // A row for each node, each to its own place.
  const Rows rows = {place_.nodes, bytes, bytes, 0};
  across.piece = {part.count, row(part), rows};
  for (uint32_t node = 0; node < place_.nodes; ++node) {
    across.result_of_node.push_back(in_block(place_.rank_of(node, place_.local_rank), part.first));
    if (is_whole) {
      piece.after.push_back({LocalStep::Kind::AllGather, across.result_of_node.back(),
                             in_block(place_.rank_of(node, 0), 0), part.count, 0});
    }
    for (uint32_t local = 0; local < place_.node_ranks; ++local) {
      const CUdeviceptr block = in_block(place_.rank_of(node, local), part.first);
      if (!is_whole)
        piece.after.push_back({LocalStep::Kind::Broadcast, block, block, part.count, local});
      if (local != place_.local_rank) piece.awaited.push_back({block, bytes});
    }
  }
  piece.across = std::move(across);
  return piece;
}

LevelPiece LevelCut::reduce_scatter(const Range& part, CUdeviceptr scratch) const {
  const uint64_t bytes = part.count * element_bytes_;
  const bool is_whole = part.count == elements_;
  LevelPiece piece;
  for (uint32_t node = 0; node < place_.nodes; ++node) {
    const CUdeviceptr own = scratch + node * bytes;
    const auto block = [&](uint32_t local) {
      return request_.input +
             (place_.rank_of(node, local) * elements_ + part.first) * element_bytes_;
    };
    if (is_whole) {
      piece.before.push_back({LocalStep::Kind::ReduceScatter, block(0), own, part.count, 0});
      continue;
    }
    for (uint32_t local = 0; local < place_.node_ranks; ++local)
      piece.before.push_back({LocalStep::Kind::Reduce, block(local), own, part.count, local});
  }
  AcrossStep across;
  across.collective = Collective::ReduceScatter;
  across.count = part.count;
  across.input = scratch;
  across.result = request_.result;
  const uint64_t all = place_.nodes * bytes;
  across.piece = {part.count, {1, all, all, 0}, row(part)};
  piece.across = std::move(across);
  return piece;
}

}  // namespace braid::client
