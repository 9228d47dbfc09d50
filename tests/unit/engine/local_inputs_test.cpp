// SPDX-License-Identifier: Apache-2.0
#include "engine/local_inputs.h"

#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/owner_step.h"
#include "reference.h"

namespace braid::test {
namespace {

// What one node's ranks have, in two pieces each, and the result.
class LocalInputsTest : public testing::Test {
 protected:
  Operation make(DataType dtype, Reduction reduction, uint64_t count, size_t ranks) {
    Operation operation;
    operation.dtype = dtype;
    operation.reduction = reduction;
    operation.count = count;
    Ring ring;
    ring.world_size = static_cast<uint32_t>(ranks);
    ring.ranks_of_node = {ring.world_size};
    operation.ring = std::make_shared<Ring>(ring);
    const uint64_t bytes = count * element_bytes(dtype);
    const uint64_t border = count / 3 * element_bytes(dtype);
    inputs_.assign(ranks, std::vector<uint8_t>(bytes));
    for (auto& values : inputs_) {
      for (uint64_t i = 0; i < count; ++i)
        store_double(dtype, static_cast<double>(random_() % 50), values.data(), i);
      OperationInput input;
      second_pieces_.emplace_back(values.begin() + static_cast<ptrdiff_t>(border), values.end());
      input.append(values.data(), border);
      input.append(second_pieces_.back().data(), bytes - border);
      operation.inputs.push_back(std::move(input));
    }
    result_.assign(bytes + 64, 0);
    const auto address = reinterpret_cast<uintptr_t>(result_.data());
    operation.result = result_.data() + (64 - address % 64) % 64;
    return operation;
  }

  void expect_sum(const Operation& operation) {
    std::vector<const uint8_t*> operands;
    for (const auto& values : inputs_) operands.push_back(values.data());
    auto expected = fold_reference(operation.dtype, operation.reduction, operands, operation.count);
    if (operation.reduction == Reduction::Average) {
      divide_reference(operation.dtype, expected.data(), operation.count,
                       operation.ring->world_size);
    }
    EXPECT_TRUE(same_elements(operation.dtype, operation.result, expected.data(), operation.count));
  }

  std::mt19937_64 random_{5};
  std::vector<std::vector<uint8_t>> inputs_;
  std::vector<std::vector<uint8_t>> second_pieces_;
  std::vector<uint8_t> result_;
};

// Small ones and such as go past the caches.
TEST_F(LocalInputsTest, ReducesAndAveragesAnySize) {
  for (const Reduction reduction : {Reduction::Sum, Reduction::Average, Reduction::Max}) {
    for (const DataType dtype : {DataType::Float32, DataType::BFloat16}) {
      for (const uint64_t count : {uint64_t{1}, uint64_t{40'009}, uint64_t{300'017}}) {
        SCOPED_TRACE(fmt::format("{} {} {}", to_string(dtype), to_string(reduction), count));
        const Operation operation = make(dtype, reduction, count, 3);
        LocalInputs inputs(operation);
        const uint64_t bytes = count * element_bytes(dtype);
        const uint64_t first = bytes / 2 / 64 * 64;
        for (const Extent extent : {Extent{0, first}, Extent{first, bytes - first}}) {
          uint8_t* const out = operation.result + extent.offset;
          inputs.reduce(extent, nullptr, out, Store::Streamed);
          if (reduction != Reduction::Average) continue;
          EXPECT_EQ(AverageStep().apply(operation, extent, out, {}), StepOutcome::Ended);
        }
        expect_sum(operation);
      }
    }
  }
}

}  // namespace
}  // namespace braid::test
