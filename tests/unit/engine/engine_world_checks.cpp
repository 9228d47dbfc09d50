// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "engine_world_parts.h"
#include "reference.h"

namespace braid::test {

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

// What a rank gets, by the definition of the collective.
std::vector<uint8_t> EngineWorld::exchanged(const Running& running, uint32_t rank) const {
  const size_t element = element_bytes(running.spec.dtype);
  std::vector<uint8_t> result;
  for (uint32_t from = 0; from < world_size(); ++from) {
    uint64_t before = 0;
    for (uint32_t to = 0; to < rank; ++to) before += elements_between(running.spec, from, to);
    const auto begin = running.inputs[from].begin() + static_cast<ptrdiff_t>(before * element);
    const uint64_t elements = elements_between(running.spec, from, rank);
    result.insert(result.end(), begin, begin + static_cast<ptrdiff_t>(elements * element));
  }
  return result;
}

std::vector<uint8_t> EngineWorld::final_part(const Running& running, uint32_t node) const {
  const auto& result = running.parts[node].memory->result;
  if (running.spec.collective != Collective::ReduceScatter) return result;
  const uint64_t block = running.spec.count * element_bytes(running.spec.dtype);
  const uint64_t before =
      std::accumulate(options_.ranks_of_node.begin(), options_.ranks_of_node.begin() + node, 0U);
  const auto start = result.begin() + static_cast<ptrdiff_t>(before * block);
  return {start, start + static_cast<ptrdiff_t>(options_.ranks_of_node[node] * block)};
}

void EngineWorld::expect_right(const Running& running, const std::vector<uint8_t>& result,
                               uint32_t node) const {
  const OperationSpec& spec = running.spec;
  std::vector<uint8_t> expected;
  if (is_exchange(spec.collective)) {
    for (uint32_t k = 0; k < options_.ranks_of_node[node]; ++k) {
      const auto one = exchanged(running, first_rank_of(node) + k);
      expected.insert(expected.end(), one.begin(), one.end());
    }
    EXPECT_EQ(result, expected) << "node " << node;
    return;
  }
  if (spec.collective == Collective::AllGather) {
    for (const auto& input : running.inputs)
      expected.insert(expected.end(), input.begin(), input.end());
  } else if (spec.collective == Collective::Broadcast) {
    expected = running.inputs[spec.root_rank];
  }
  if (spec.collective == Collective::AllGather || spec.collective == Collective::Broadcast) {
    EXPECT_EQ(result, expected) << "node " << node;
    return;
  }
  expect_sum(running, result, node);
}

// Floats in double precision, with room for one rounding per rank; integers exactly.
void EngineWorld::expect_sum(const Running& running, const std::vector<uint8_t>& result,
                             uint32_t node) const {
  const OperationSpec& spec = running.spec;
  const uint64_t first_element = spec.collective == Collective::AllReduce
                                     ? 0
                                     : std::accumulate(options_.ranks_of_node.begin(),
                                                       options_.ranks_of_node.begin() + node, 0U) *
                                           spec.count;
  const uint64_t elements = result.size() / element_bytes(spec.dtype);
  const DataType exact = is_float(spec.dtype) ? DataType::Float64 : spec.dtype;
  const double epsilon = spec.dtype == DataType::Float64   ? 0x1p-52
                         : spec.dtype == DataType::Float32 ? 0x1p-23
                         : spec.dtype == DataType::Float16 ? 0x1p-10
                                                           : 0x1p-7;
  std::vector<std::vector<uint8_t>> converted;
  std::vector<const uint8_t*> operands;
  for (const auto& input : running.inputs) {
    auto& values = converted.emplace_back(elements * element_bytes(exact));
    if (exact == spec.dtype) {
      const auto start =
          input.begin() + static_cast<ptrdiff_t>(first_element * element_bytes(exact));
      std::copy_n(start, values.size(), values.begin());
    } else {
      for (uint64_t i = 0; i < elements; ++i) {
        store_double(exact, element_as_double(spec.dtype, input.data(), first_element + i),
                     values.data(), i);
      }
    }
    operands.push_back(values.data());
  }
  std::vector<uint8_t> expected = fold_reference(exact, spec.reduction, operands, elements);
  if (spec.reduction == Reduction::Average)
    divide_reference(exact, expected.data(), elements, world_size());
  if (exact == spec.dtype) {
    EXPECT_TRUE(result == expected || is_float(spec.dtype)) << "node " << node;
    if (!is_float(spec.dtype)) return;
  }
  for (uint64_t i = 0; i < elements; ++i) {
    const double right = element_as_double(exact, expected.data(), i);
    const double got = element_as_double(spec.dtype, result.data(), i);
    ASSERT_NEAR(got, right, epsilon * (world_size() + 1) * std::abs(right))
        << "node " << node << ", element " << i;
  }
}

void EngineWorld::expect_all_ended() {
  for (const auto& running : running_) {
    SCOPED_TRACE(to_string(running->spec));
    if (running->is_aborted) continue;
    for (uint32_t node = 0; node < nodes(); ++node) {
      const NodePart& part = running->parts[node];
      EXPECT_EQ(part.done, options_.io_loops);
      EXPECT_EQ(part.retired, options_.io_loops);
      expect_right(*running, part.result, node);
      EXPECT_TRUE(running->spec.collective == Collective::ReduceScatter ||
                  is_exchange(running->spec.collective) || part.result == running->parts[0].result);
      EXPECT_TRUE(part.watch.expired()) << "memory is held after the end";
      if (testing::Test::HasFailure()) return;
    }
  }
}

void EngineWorld::expect_no_memory_held(uint64_t job_key) {
  for (const auto& running : running_) {
    if (running->spec.job_key != job_key) continue;
    for (const auto& part : running->parts)
      EXPECT_TRUE(part.watch.expired()) << to_string(running->spec);
  }
}

}  // namespace braid::test
