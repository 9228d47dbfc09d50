// SPDX-License-Identifier: Apache-2.0
// Random programs of collectives on device memory: the same for all ranks that have the seed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <braid.h>

namespace braid::device_programs {

struct Step {
  uint32_t group = 0;
  braid_collective collective = BRAID_ALL_REDUCE;
  braid_dtype dtype = BRAID_FLOAT32;
  braid_reduction reduction = BRAID_SUM;
  uint32_t root = 0;               // in the group
  uint64_t count = 0;              // as braid_operation has it
  bool has_splits = false;         // all-to-all
  bool is_in_place = false;        // one memory, with input or result in its place of the other
  bool are_results_apart = false;  // all-gather
  uint32_t stream = 0;             // of the rank
  bool stream_waits = true;
  uint32_t delay_us = 0;    // that the input takes to be computed
  uint32_t wait_after = 0;  // this many further steps are submitted before somebody waits for it
  bool is_released_early = false;  // the ticket, before the results are there
  bool frees_beside = false;       // another thread frees other memory meanwhile
};

struct Program {
  uint64_t seed = 0;
  uint32_t ranks = 0;
  uint32_t node_ranks = 0;  // that are neighbours on a node; 0: ranks go around the nodes
  std::vector<std::vector<uint32_t>> groups;  // ranks of each, ascending
  std::vector<Step> steps;
  std::vector<std::pair<std::string, std::string>> settings;  // of the fake driver
};

inline constexpr uint32_t kStreams = 3;

// `node_ranks` 0: of two to four ranks, whichever node they are on. Else of so many ranks on each
// of the nodes, which are to carry the first group in two levels.
Program program_of(uint64_t seed, uint32_t nodes, uint32_t node_ranks);

// How many elements rank `from` of a group gives to rank `to` in an all-to-all with splits.
uint64_t split_of(const Step& step, uint32_t from, uint32_t to);

}  // namespace braid::device_programs
