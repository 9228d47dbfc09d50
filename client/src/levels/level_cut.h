// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <cuda.h>

#include "device/device_operation.h"
#include "device/pieces.h"
#include "proto/types.h"

namespace braid::client {

// Where a rank is in a job whose nodes have equally many ranks: rank = node * node_ranks +
// local_rank.
struct LevelPlace {
  uint32_t nodes = 1;
  uint32_t node_ranks = 1;
  uint32_t node = 0;
  uint32_t local_rank = 0;

  uint32_t rank_of(uint32_t a_node, uint32_t a_local_rank) const {
    return a_node * node_ranks + a_local_rank;
  }
};

// A call of NCCL between the ranks of a node. Counts are as NCCL has them.
struct LocalStep {
  enum class Kind { ReduceScatter, AllGather, Reduce, Broadcast };
  Kind kind = Kind::ReduceScatter;
  CUdeviceptr from = 0;
  CUdeviceptr to = 0;
  uint64_t count = 0;
  uint32_t root = 0;  // a local rank
};

// An operation of braid between the ranks that have one local rank on all nodes. Its roots, and
// blocks, are those of nodes.
struct AcrossStep {
  Collective collective = Collective::AllReduce;
  uint64_t count = 0;  // as braid_operation has it
  uint32_t root = 0;
  CUdeviceptr input = 0;
  CUdeviceptr result = 0;
  std::vector<CUdeviceptr> result_of_node;  // empty: `result` has all of it
  Piece piece;
};

struct DevicePart {
  CUdeviceptr memory = 0;
  uint64_t bytes = 0;
};

// A part of an operation, on one rank. The steps of one list are one group of NCCL's.
struct LevelPiece {
  std::vector<LocalStep> before;
  std::optional<AcrossStep> across;  // none: this rank has no part in it
  std::vector<LocalStep> after;
  std::vector<DevicePart> awaited;  // what `after` brings from other ranks
};

// How an operation on device memory is carried in two levels: NCCL between the ranks of a node,
// braid between nodes (the shape of Dong et al., "AIACC-Training", section IV). It is cut into
// pieces, so that the levels overlap.
//
//   all-reduce      reduce-scatter in the node; all-reduce across of a rank's block; all-gather
//   reduce-scatter  reduce-scatter in the node, of each node's blocks; reduce-scatter across
//   all-gather      all-gather across of a rank's block; all-gather in the node, of each node's
//   broadcast       broadcast across by the root's local rank; broadcast in the node
//
// Every rank sends 1/node_ranks of the bytes between nodes that it would send in one level. The
// others (gather, scatter, all-to-all) go in one level: two would move as many bytes between nodes,
// and all of a node's through one GPU.
class LevelCut {
 public:
  // Whether the operation gains by two levels. The same on all ranks.
  static bool takes(const DeviceRequest& request);

  // `request` is one that it takes, and stays.
  LevelCut(const DeviceRequest& request, LevelPlace place);

  uint32_t count() const { return count_; }
  // How much device memory the piece takes beside input and result: between its `before` and
  // `across`.
  uint64_t scratch_bytes(uint32_t index) const;
  LevelPiece piece(uint32_t index, CUdeviceptr scratch) const;

 private:
  struct Range {
    uint64_t first = 0;  // elements
    uint64_t count = 0;
  };

  Range range(uint32_t index) const;
  // Where an element of a block of the result is.
  CUdeviceptr in_block(uint32_t rank, uint64_t element) const;
  // A part of a tensor as one row.
  Rows row(const Range& range) const;
  LevelPiece all_reduce(const Range& range) const;
  LevelPiece broadcast(const Range& range) const;
  LevelPiece all_gather(const Range& range) const;
  LevelPiece reduce_scatter(const Range& range, CUdeviceptr scratch) const;

  const DeviceRequest& request_;
  const LevelPlace place_;
  const Collective collective_;
  const uint64_t element_bytes_;
  const uint64_t elements_;
  uint64_t elements_of_piece_ = 0;
  uint32_t count_ = 1;
};

}  // namespace braid::client
