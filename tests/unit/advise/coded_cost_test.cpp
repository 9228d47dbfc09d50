// SPDX-License-Identifier: Apache-2.0
#include "advise/coded_cost.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "planner/fitted_cost.h"
#include "tests/unit/advise/profiles.h"

namespace braid {
namespace {

constexpr CodedCost::Options kTwoNodes = {.nodes = 2, .encode_threads = 1, .chunk_bytes = 100};

TEST(CodedCostTest, WithoutACodecItIsTheWires) {
  const LinearCostModel wire({3, 0.5}, 1.5);
  const CodedCost cost(wire, CodecProfile(), kTwoNodes);
  for (const uint64_t bytes : {0, 1, 99, 200, 201, 100'000}) {
    EXPECT_DOUBLE_EQ(cost.seconds(bytes), wire.seconds(bytes)) << bytes;
  }
  EXPECT_EQ(cost.slowdown(2), 1.5);
}

TEST(CodedCostTest, AddsAChunkOfTheCodingToASlowWire) {
  // W(M) = M / 4, C(M) = M / 8.
  const LinearCostModel wire({3, 0.5});
  const CodedCost cost(wire, profile("half", 0.5, 0.125), kTwoNodes);
  EXPECT_DOUBLE_EQ(cost.seconds(1000), 3 + 250 + 12.5) << "a chunk of 100 bytes";
  EXPECT_DOUBLE_EQ(cost.seconds(100), 3 + 25 + 6.25) << "a chunk is no more than a part: 50 bytes";
}

TEST(CodedCostTest, AddsAChunkOfTheWireToSlowCoding) {
  // W(M) = M / 4, C(M) = 2 M.
  const LinearCostModel wire({3, 0.5}, 1.5);
  const CodedCost cost(wire, profile("slow", 0.5, 2), kTwoNodes);
  EXPECT_DOUBLE_EQ(cost.seconds(1000), 3 + 2000 + 25);
  EXPECT_EQ(cost.slowdown(2), 2) << "units side by side share the threads that encode";
}

TEST(CodedCostTest, ThreadsShareTheCoding) {
  const LinearCostModel wire({3, 0.5});
  CodedCost::Options options = kTwoNodes;
  options.encode_threads = 4;  // C(M) = M / 2
  const CodedCost cost(wire, profile("slow", 0.5, 2), options);
  EXPECT_DOUBLE_EQ(cost.seconds(1000), 3 + 500 + 25);
}

TEST(CodedCostTest, ThreadsThatEncodeAlsoSendAndReceiveWhatIsLeft) {
  const LinearCostModel wire({3, 0.5});
  CodedCost::Options options = kTwoNodes;
  options.encode_threads = 0.5;
  options.carry_seconds_per_byte = 0.3;
  // W(M) = M / 4; C(M) = 2 (M / 8 + 0.15 M).
  const CodedCost cost(wire, profile("half", 0.5, 0.125), options);
  EXPECT_DOUBLE_EQ(cost.seconds(1000), 3 + 550 + 25);
  EXPECT_EQ(cost.slowdown(2), 2);
  EXPECT_DOUBLE_EQ(CodedCost(wire, CodecProfile(), options).seconds(1000), 3 + 500)
      << "as measured";
  options.transfer_factor = 0.1;
  EXPECT_DOUBLE_EQ(CodedCost(wire, CodecProfile(), options).seconds(1000), 3 + 600 + 5)
      << "on a faster wire threads are what takes longest";
}

TEST(CodedCostTest, TransfersScaleAndStartupsDoNot) {
  const LinearCostModel wire({3, 0.5});
  CodedCost::Options options = kTwoNodes;
  options.transfer_factor = 0.1;
  EXPECT_DOUBLE_EQ(CodedCost(wire, CodecProfile(), options).seconds(1000), 3 + 50);
}

// The term by term definition, against lines that were cut where its terms bend, jump and cross.
TEST(CodedCostTest, LinesAreTheDefinition) {
  const auto wire =
      FittedCost::create({{1, 500, {10, 0.01}, 4, 0}, {600, 20'000, {40, 0.05}, 4, 0}}, {});
  ASSERT_TRUE(wire) << wire.status().message();
  CodecProfile codec = profile("bent", 0.25, 0);
  codec.coding = {{400, 30}, {3000, 32}, {9000, 300}};
  const CodedCost::Options options = {.nodes = 3, .encode_threads = 1, .chunk_bytes = 700};
  const CodedCost cost(*wire, codec, options);
  double before = 0;
  double longest = 0;
  for (uint64_t bytes = 4; bytes < 200'000; bytes += 4) {
    const auto chunk = std::min<double>(700, static_cast<double>(bytes) / 3);
    const auto transfer = [&](double plain) {
      return wire->phases(static_cast<uint64_t>(std::ceil(plain / 4))).transfer_seconds;
    };
    const auto whole = static_cast<double>(bytes);
    const double seconds = wire->phases(bytes / 4).startup_seconds +
                           std::max(transfer(whole), codec.coding_seconds(whole)) +
                           std::min(transfer(chunk), codec.coding_seconds(chunk));
    // Where less would be taken, the line is flat. A chunk's bytes are rounded up above.
    longest = std::max(longest, seconds);
    ASSERT_NEAR(cost.seconds(bytes), longest, 0.1) << bytes;
    ASSERT_GE(cost.seconds(bytes), before) << bytes << ": more bytes never take less";
    before = cost.seconds(bytes);
  }
  EXPECT_EQ(cost.lines().back().bytes_max, UINT64_MAX);
}

}  // namespace
}  // namespace braid
