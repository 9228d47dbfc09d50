// SPDX-License-Identifier: Apache-2.0
#include "engine/operation.h"

#include <gtest/gtest.h>

#include "engine/operation_input.h"

namespace braid {
namespace {

TEST(Operation, sizes_follow_from_the_collective) {
  EXPECT_EQ(input_bytes(Collective::AllReduce, DataType::Float32, 10, 4), 40U);
  EXPECT_EQ(result_bytes(Collective::AllReduce, DataType::Float32, 10, 4), 40U);
  EXPECT_EQ(input_bytes(Collective::Broadcast, DataType::Int64, 10, 4), 80U);
  EXPECT_EQ(result_bytes(Collective::Broadcast, DataType::Int64, 10, 4), 80U);
  EXPECT_EQ(input_bytes(Collective::AllGather, DataType::Float16, 10, 4), 20U);
  EXPECT_EQ(result_bytes(Collective::AllGather, DataType::Float16, 10, 4), 80U);
  EXPECT_EQ(input_bytes(Collective::ReduceScatter, DataType::Uint8, 10, 4), 40U);
  EXPECT_EQ(result_bytes(Collective::ReduceScatter, DataType::Uint8, 10, 4), 40U);
  EXPECT_EQ(input_bytes(Collective::Barrier, DataType::Float64, 10, 4), 0U);
  EXPECT_EQ(result_bytes(Collective::Barrier, DataType::Float64, 10, 4), 0U);
}

TEST(Operation, sizes_that_overflow_exceed_every_limit) {
  EXPECT_EQ(result_bytes(Collective::AllReduce, DataType::Float64, UINT64_MAX / 4, 1), UINT64_MAX);
  EXPECT_EQ(result_bytes(Collective::AllGather, DataType::Uint8, UINT64_MAX / 2, 3), UINT64_MAX);
  EXPECT_EQ(input_bytes(Collective::ReduceScatter, DataType::Float64, UINT64_MAX / 16, 4),
            UINT64_MAX);
}

TEST(Operation, keys_that_differ_in_one_part_hash_apart) {
  const OperationKeyHash hash;
  const OperationKey key{1, 2, 3};
  EXPECT_EQ(hash(key), hash(OperationKey{1, 2, 3}));
  EXPECT_NE(hash(key), hash(OperationKey{2, 2, 3}));
  EXPECT_NE(hash(key), hash(OperationKey{1, 3, 3}));
  EXPECT_NE(hash(key), hash(OperationKey{1, 2, 4}));
}

uint8_t memory[100];

TEST(OperationInput, OnePieceHoldsEverything) {
  const OperationInput input(memory);
  EXPECT_EQ(input.find(3, 90), memory + 3);
  EXPECT_TRUE(input == memory);
}

TEST(OperationInput, FindsWhatLiesInOnePiece) {
  OperationInput input;
  input.append(memory + 50, 8);
  input.append(memory, 16);
  EXPECT_EQ(input.find(0, 8), memory + 50);
  EXPECT_EQ(input.find(8, 16), memory);
  EXPECT_EQ(input.find(20, 4), memory + 12);
  EXPECT_EQ(input.find(4, 8), nullptr);
}

TEST(OperationInput, SaysHowFarAPieceGoes) {
  OperationInput input;
  input.append(memory + 50, 8);
  input.append(memory, 16);
  uint64_t contiguous = 0;
  EXPECT_EQ(input.at(5, 100, contiguous), memory + 55);
  EXPECT_EQ(contiguous, 3u);
  EXPECT_EQ(input.at(8, 10, contiguous), memory);
  EXPECT_EQ(contiguous, 10u);
}

TEST(OperationInput, NeighboursInMemoryAreOnePiece) {
  OperationInput input;
  input.append(memory, 8);
  input.append(memory + 8, 0);
  input.append(memory + 8, 24);
  EXPECT_EQ(input.find(0, 32), memory);
}

}  // namespace
}  // namespace braid
