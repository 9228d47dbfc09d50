// SPDX-License-Identifier: Apache-2.0
#include "operation_case.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reference.h"

namespace braid::test {
namespace {

// Ends of `pieces` pieces of nearly equal length, in whole elements.
uint64_t end_of_piece(uint64_t bytes, uint32_t pieces, uint32_t piece, size_t element) {
  return bytes / element * (piece + 1) / pieces * element;
}

}  // namespace

std::string to_string(const OperationSpec& spec) {
  return fmt::format("{} {} {} × {}, root {}", to_string(spec.collective),
                     to_string(spec.reduction), spec.count, to_string(spec.dtype), spec.root_rank);
}

uint64_t elements_between(const OperationSpec& spec, uint32_t from, uint32_t to) {
  switch (spec.collective) {
    case Collective::Gather:
      return to == spec.root_rank ? spec.count : 0;
    case Collective::Scatter:
      return from == spec.root_rank ? spec.count : 0;
    default:
      return spec.is_uneven ? spec.count * ((from * 5 + to * 3) % 4) / 2 : spec.count;
  }
}

OperationCase::OperationCase(const OperationSpec& spec, std::vector<uint32_t> ranks_of_node,
                             size_t number)
    : spec_(spec), ranks_of_node_(std::move(ranks_of_node)) {
  const size_t element = element_bytes(spec_.dtype);
  std::mt19937_64 data(spec_.count * 31 + number * 7 + static_cast<uint64_t>(spec_.dtype));
  std::uniform_real_distribution<double> floats(0.5, 1.5);
  for (uint32_t rank = 0; rank < world_size(); ++rank) {
    uint64_t bytes = input_bytes(spec_.collective, spec_.dtype, spec_.count, world_size());
    if (is_exchange(spec_.collective)) bytes = splits_of(rank).to.sum() * element;
    auto& input = inputs_.emplace_back(bytes);
    for (uint64_t i = 0; i < bytes / element; ++i) {
      const double integer =
          static_cast<double>(data() % 200) - (spec_.dtype == DataType::Uint8 ? 0 : 100);
      store_double(spec_.dtype, is_float(spec_.dtype) ? floats(data) : integer, input.data(), i);
    }
  }
}

uint32_t OperationCase::first_rank_of(uint32_t node) const {
  return std::accumulate(ranks_of_node_.begin(), ranks_of_node_.begin() + node, 0U);
}

Splits OperationCase::splits_of(uint32_t rank) const {
  std::vector<uint64_t> to;
  std::vector<uint64_t> from;
  for (uint32_t other = 0; other < world_size(); ++other) {
    to.push_back(elements_between(spec_, rank, other));
    from.push_back(elements_between(spec_, other, rank));
  }
  return {SplitCounts(to), SplitCounts(from)};
}

std::vector<uint8_t> OperationCase::memory_of(uint32_t rank) const {
  const std::vector<uint8_t>& input = inputs_[rank];
  const size_t element = element_bytes(spec_.dtype);
  std::vector<uint8_t> memory;
  for (uint32_t piece = spec_.pieces; piece-- > 0;) {
    const uint64_t begin =
        piece == 0 ? 0 : end_of_piece(input.size(), spec_.pieces, piece - 1, element);
    const uint64_t end = end_of_piece(input.size(), spec_.pieces, piece, element);
    memory.insert(memory.end(), input.begin() + static_cast<int64_t>(begin),
                  input.begin() + static_cast<int64_t>(end));
  }
  return memory;
}

OperationInput OperationCase::input_in(const std::vector<uint8_t>& memory) const {
  if (spec_.pieces == 1) return {memory.data()};
  const size_t element = element_bytes(spec_.dtype);
  OperationInput input;
  uint64_t begin = 0;
  for (uint32_t piece = 0; piece < spec_.pieces; ++piece) {
    const uint64_t end = end_of_piece(memory.size(), spec_.pieces, piece, element);
    input.append(memory.data() + (memory.size() - end), end - begin);
    begin = end;
  }
  return input;
}

uint64_t OperationCase::result_bytes_of(uint32_t node) const {
  uint64_t bytes = result_bytes(spec_.collective, spec_.dtype, spec_.count, world_size());
  if (!is_exchange(spec_.collective)) return bytes;
  for (uint32_t rank = first_rank_of(node); rank < first_rank_of(node + 1); ++rank)
    bytes += splits_of(rank).from.sum() * element_bytes(spec_.dtype);
  return bytes;
}

std::vector<uint8_t> OperationCase::final_part(const std::vector<uint8_t>& memory,
                                               uint32_t node) const {
  if (spec_.collective != Collective::ReduceScatter) return memory;
  const uint64_t block = spec_.count * element_bytes(spec_.dtype);
  const auto start = memory.begin() + static_cast<ptrdiff_t>(first_rank_of(node) * block);
  return {start, start + static_cast<ptrdiff_t>(ranks_of_node_[node] * block)};
}

// What a rank gets, by the definition of the collective.
std::vector<uint8_t> OperationCase::exchanged(uint32_t rank) const {
  const size_t element = element_bytes(spec_.dtype);
  std::vector<uint8_t> result;
  for (uint32_t from = 0; from < world_size(); ++from) {
    uint64_t before = 0;
    for (uint32_t to = 0; to < rank; ++to) before += elements_between(spec_, from, to);
    const auto begin = inputs_[from].begin() + static_cast<ptrdiff_t>(before * element);
    const uint64_t elements = elements_between(spec_, from, rank);
    result.insert(result.end(), begin, begin + static_cast<ptrdiff_t>(elements * element));
  }
  return result;
}

void OperationCase::expect_right(const std::vector<uint8_t>& result, uint32_t node) const {
  std::vector<uint8_t> expected;
  if (is_exchange(spec_.collective)) {
    for (uint32_t k = 0; k < ranks_of_node_[node]; ++k) {
      const auto one = exchanged(first_rank_of(node) + k);
      expected.insert(expected.end(), one.begin(), one.end());
    }
    EXPECT_EQ(result, expected) << "node " << node;
    return;
  }
  if (spec_.collective == Collective::AllGather) {
    for (const auto& input : inputs_) expected.insert(expected.end(), input.begin(), input.end());
  } else if (spec_.collective == Collective::Broadcast) {
    expected = inputs_[spec_.root_rank];
  }
  if (spec_.collective == Collective::AllGather || spec_.collective == Collective::Broadcast) {
    EXPECT_EQ(result, expected) << "node " << node;
    return;
  }
  expect_sum(result, node);
}

// Floats in double precision, with room for one rounding per rank; integers exactly.
void OperationCase::expect_sum(const std::vector<uint8_t>& result, uint32_t node) const {
  const uint64_t first_element =
      spec_.collective == Collective::AllReduce ? 0 : first_rank_of(node) * spec_.count;
  const uint64_t elements = result.size() / element_bytes(spec_.dtype);
  const DataType exact = is_float(spec_.dtype) ? DataType::Float64 : spec_.dtype;
  const double epsilon = spec_.dtype == DataType::Float64   ? 0x1p-52
                         : spec_.dtype == DataType::Float32 ? 0x1p-23
                         : spec_.dtype == DataType::Float16 ? 0x1p-10
                                                            : 0x1p-7;
  std::vector<std::vector<uint8_t>> converted;
  std::vector<const uint8_t*> operands;
  for (const auto& input : inputs_) {
    auto& values = converted.emplace_back(elements * element_bytes(exact));
    if (exact == spec_.dtype) {
      const auto start =
          input.begin() + static_cast<ptrdiff_t>(first_element * element_bytes(exact));
      std::copy_n(start, values.size(), values.begin());
    } else {
      for (uint64_t i = 0; i < elements; ++i) {
        store_double(exact, element_as_double(spec_.dtype, input.data(), first_element + i),
                     values.data(), i);
      }
    }
    operands.push_back(values.data());
  }
  std::vector<uint8_t> expected = fold_reference(exact, spec_.reduction, operands, elements);
  if (spec_.reduction == Reduction::Average)
    divide_reference(exact, expected.data(), elements, world_size());
  if (exact == spec_.dtype) {
    EXPECT_TRUE(result == expected || is_float(spec_.dtype)) << "node " << node;
    if (!is_float(spec_.dtype)) return;
  }
  for (uint64_t i = 0; i < elements; ++i) {
    const double right = element_as_double(exact, expected.data(), i);
    const double got = element_as_double(spec_.dtype, result.data(), i);
    ASSERT_NEAR(got, right, epsilon * (world_size() + 1) * std::abs(right))
        << "node " << node << ", element " << i;
  }
}

}  // namespace braid::test
