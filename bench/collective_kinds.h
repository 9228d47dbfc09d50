// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "proto/types.h"

namespace braid::bench {

// A collective as braid-bench measures it.
struct CollectiveKind {
  Collective collective = Collective::AllReduce;
  const char* name = "";  // torch's, and braid.h's in small letters
  const char* about = "";
  bool is_reducing = false;
  // The size is that of all ranks' parts together: of the larger one of what a rank gives and what
  // it gets (nccl-tests, …GetCollByteCount). Else every rank gives or gets all of it.
  bool is_in_parts = false;
};

std::span<const CollectiveKind> collective_kinds();

// What busbw is of algbw, by nccl-tests' doc/PERFORMANCE.md, and for gather and scatter by its
// sources (GatherGetBw, ScatterGetBw): what must cross the busiest rank's wire of a size.
double bus_factor(const CollectiveKind& kind, uint32_t ranks);

// One collective among these ranks, at any size, as one of them sees it. Counts are braid.h's.
struct CollectiveSetup {
  CollectiveKind kind;
  DataType dtype = DataType::Float32;
  Reduction reduction = Reduction::Sum;
  uint32_t root = 0;
  uint32_t rank = 0;
  uint32_t world_size = 1;

  std::optional<Reduction> reduction_if_any() const;
  // How many elements an operation of `bytes` has: as many as fit, and where each rank has a part,
  // these are multiples of 16 bytes, as in nccl-tests. 0: it has none.
  uint64_t count_of(uint64_t bytes) const;
  // The size of an operation of `count`, and the least one that gives each rank something.
  uint64_t bytes_of(uint64_t count) const;
  uint64_t bytes_least() const { return bytes_of(count_unit()); }
  // Elements that this rank gives and gets; 0: nothing.
  uint64_t input_count(uint64_t count) const;
  uint64_t result_count(uint64_t count) const;

  // An error unless there is a root of that number, and all of `sizes` are as they are measured.
  Status check_root() const;
  Status check_exact(std::span<const uint64_t> sizes) const;

 private:
  bool is_root() const { return rank == root; }
  uint64_t parts() const { return kind.is_in_parts ? world_size : 1; }
  uint64_t count_unit() const;  // counts are multiples of it
};

}  // namespace braid::bench
