// SPDX-License-Identifier: Apache-2.0
#include "engine/operation.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace braid
