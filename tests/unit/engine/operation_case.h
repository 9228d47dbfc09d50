// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/exchange.h"

namespace braid::test {

struct OperationSpec {
  Collective collective = Collective::AllReduce;
  DataType dtype = DataType::Float32;
  Reduction reduction = Reduction::Sum;
  uint64_t count = 1000;
  uint32_t root_rank = 0;
  uint64_t job_key = 1;
  uint64_t step = 0;
  uint32_t pieces = 1;  // all-reduce: how many places each input lies in
  uint64_t urgency = kMostUrgent;
  bool is_uneven = false;  // all-to-all
  bool is_added = true;    // all-reduce; false: it goes by a route on which nothing is added
};

std::string to_string(const OperationSpec& spec);

// How many elements rank `from` has for rank `to` in a gather, scatter or all-to-all.
uint64_t elements_between(const OperationSpec& spec, uint32_t from, uint32_t to);

// An operation's inputs on all ranks, and what its result must be by the definition of its
// collective.
class OperationCase {
 public:
  // The inputs depend on the operation and its number alone: so runs can be compared bit by bit.
  OperationCase(const OperationSpec& spec, std::vector<uint32_t> ranks_of_node, size_t number);

  const OperationSpec& spec() const { return spec_; }
  uint32_t world_size() const {
    return first_rank_of(static_cast<uint32_t>(ranks_of_node_.size()));
  }
  uint32_t first_rank_of(uint32_t node) const;
  // A rank's input as it lies in memory: its pieces from the last to the first.
  std::vector<uint8_t> memory_of(uint32_t rank) const;
  OperationInput input_in(const std::vector<uint8_t>& memory) const;
  Splits splits_of(uint32_t rank) const;
  uint64_t result_bytes_of(uint32_t node) const;
  // The part of `memory`, a node's result, that the operation writes.
  std::vector<uint8_t> final_part(const std::vector<uint8_t>& memory, uint32_t node) const;
  void expect_right(const std::vector<uint8_t>& result, uint32_t node) const;

 private:
  std::vector<uint8_t> exchanged(uint32_t rank) const;
  void expect_sum(const std::vector<uint8_t>& result, uint32_t node) const;

  const OperationSpec spec_;
  const std::vector<uint32_t> ranks_of_node_;
  std::vector<std::vector<uint8_t>> inputs_;  // by rank
};

}  // namespace braid::test
