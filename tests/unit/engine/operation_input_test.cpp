// SPDX-License-Identifier: Apache-2.0
#include "engine/operation_input.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

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
