// SPDX-License-Identifier: Apache-2.0
#include "net/flow_messages.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

const proto::ControlMessage& verified(const flatbuffers::FlatBufferBuilder& built) {
  flatbuffers::Verifier verifier(built.GetBufferPointer(), built.GetSize());
  EXPECT_TRUE(proto::VerifyControlMessageBuffer(verifier));
  return *proto::GetControlMessage(built.GetBufferPointer());
}

FlowOffer offer() { return {3, 7, 2, "eth0", {1, 2, 3, 4, 5}}; }

TEST(FlowMessages, OpenCarriesEveryFlow) {
  flatbuffers::FlatBufferBuilder built;
  const std::vector<FlowOffer> offers{offer(), {0, 1, 1, "lo", {9}}};
  write_flow_open(built, 42, 4, 8, 65536, "native", offers);
  const auto& message = *verified(built).body_as_FlowOpen();
  EXPECT_EQ(message.link_nonce(), 42u);
  EXPECT_EQ(message.chunk_bytes(), 65536u);
  const auto read = read_flow_open(message);
  ASSERT_TRUE(read.is_ok());
  ASSERT_EQ(read.value().size(), 2u);
  EXPECT_EQ(read.value()[0].io_loop, 3);
  EXPECT_EQ(read.value()[0].flow, 7);
  EXPECT_EQ(read.value()[0].generation, 2u);
  EXPECT_EQ(read.value()[0].rail, "eth0");
  EXPECT_EQ(read.value()[0].address, offer().address);
  EXPECT_EQ(read.value()[1].flow, 1);
}

TEST(FlowMessages, RefusalKeepsItsReason) {
  flatbuffers::FlatBufferBuilder built;
  write_flow_refuse(built, {1, 2, 3, "no such rail"});
  const auto refusal = read_flow_refuse(*verified(built).body_as_FlowRefuse());
  EXPECT_EQ(refusal.io_loop, 1);
  EXPECT_EQ(refusal.flow, 2);
  EXPECT_EQ(refusal.generation, 3u);
  EXPECT_EQ(refusal.reason, "no such rail");
}

class ImpossibleOffer : public ::testing::TestWithParam<FlowOffer> {};

TEST_P(ImpossibleOffer, IsRefused) {
  flatbuffers::FlatBufferBuilder built;
  write_flow_accept(built, GetParam());
  const auto read = read_flow_accept(*verified(built).body_as_FlowAccept());
  ASSERT_FALSE(read.is_ok());
  EXPECT_EQ(read.status().code(), StatusCode::Protocol);
}

INSTANTIATE_TEST_SUITE_P(
    FlowMessages, ImpossibleOffer,
    ::testing::Values(FlowOffer{0, 0, 0, "lo", {1}}, FlowOffer{0, kFlowsPerLinkMax, 1, "lo", {1}},
                      FlowOffer{kIoLoopsMax, 0, 1, "lo", {1}}, FlowOffer{0, 0, 1, "lo", {}},
                      FlowOffer{0, 0, 1, "lo", std::vector<uint8_t>(kWorkerAddressBytesMax + 1)}));

TEST(FlowMessages, ALinkWithoutASecretIsRefused) {
  flatbuffers::FlatBufferBuilder built;
  const std::vector<FlowOffer> offers{offer()};
  write_flow_open(built, 0, 1, 1, 65536, "native", offers);
  EXPECT_FALSE(read_flow_open(*verified(built).body_as_FlowOpen()).is_ok());
}

}  // namespace
}  // namespace braid
