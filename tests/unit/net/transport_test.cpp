// SPDX-License-Identifier: Apache-2.0
#include "net/transport.h"

#include <gmock/gmock.h>

#include "net/flow_messages.h"
#include "transport_testing.h"

namespace braid::testing {
namespace {

using ::testing::HasSubstr;

TEST(Transport, DeliversAndSettlesEveryChunkOfABurstOnceOverAllFlows) {
  OpenNodes nodes;
  constexpr uint64_t kChunks = 4000;
  const auto source = nodes.submit(16 << 10, kChunks);
  nodes.expect_delivered_once(*source, kChunks);
  EXPECT_EQ(nodes.b->sink.last_from, nodes.a->id());

  size_t outgoing = 0;
  for (const auto& flow : nodes.flows(*nodes.a)) {
    if (!flow.outgoing) continue;
    ++outgoing;
    EXPECT_GT(flow.bytes_sent, 0u) << "flow " << flow.flow;
    EXPECT_EQ(flow.state, "open");
    EXPECT_EQ(flow.rail, "lo");
    EXPECT_EQ(flow.peer, "node2");
  }
  EXPECT_EQ(outgoing, TwoNodes::default_options().flows_per_link);
  const auto sender = nodes.a->transport().counters();
  const auto receiver = nodes.b->transport().counters();
  EXPECT_EQ(sender.chunks_sent, kChunks);
  EXPECT_EQ(sender.bytes_sent, kChunks * (16u << 10));
  EXPECT_EQ(sender.chunks_resent, 0u);
  EXPECT_EQ(sender.flow_failures, 0u);
  EXPECT_EQ(receiver.chunks_received, kChunks);
  EXPECT_EQ(receiver.bytes_received, sender.bytes_sent);
  EXPECT_EQ(receiver.chunks_rejected, 0u);
}

// Their acknowledgements may wait for each other, but not for a window that is full.
class TransportAckTimes : public ::testing::TestWithParam<proto::AckTime> {};

TEST_P(TransportAckTimes, SettlesChunksAloneAndInBursts) {
  OpenNodes nodes;
  for (const size_t bytes : {size_t{16}, size_t{16 << 10}, size_t{64 << 10}}) {
    for (const uint64_t chunks : {1, 2, 1500}) {
      nodes.b->sink.arrived.clear();
      const auto source = std::make_shared<RecordingSource>(bytes);
      source->ack_time = GetParam();
      nodes.submit(source, 0, chunks);
      ASSERT_TRUE(nodes.settles(*source, chunks));
      EXPECT_TRUE(each_exactly(source->settled, chunks, 1));
      EXPECT_TRUE(each_exactly(nodes.b->sink.arrived, chunks, 1));
    }
  }
  EXPECT_EQ(nodes.b->sink.corrupt, 0u);
}

INSTANTIATE_TEST_SUITE_P(Each, TransportAckTimes,
                         ::testing::Values(proto::AckTime::AtOnce, proto::AckTime::Soon,
                                           proto::AckTime::Late));

TEST(Transport, LetsNoAcknowledgementWaitOnceHalfOfTheWindowIsOnItsWay) {
  auto options = TwoNodes::default_options();
  options.flows_per_link = 1;
  options.window_bytes = 8 * (32 << 10);
  OpenNodes nodes(options);
  nodes.b_stands_still = true;
  const auto source = std::make_shared<RecordingSource>(32 << 10);
  source->ack_time = proto::AckTime::Late;
  nodes.submit(source, 0, 8);
  ASSERT_TRUE(nodes.run_until([&] { return source->given == 8; }));
  nodes.b_stands_still = false;
  ASSERT_TRUE(nodes.settles(*source, 8));
  for (uint64_t chunk = 3; chunk < 8; ++chunk) {
    EXPECT_EQ(nodes.b->sink.ack_times[chunk], static_cast<uint8_t>(proto::AckTime::AtOnce))
        << "chunk " << chunk;
  }
}

class TransportSizes : public ::testing::TestWithParam<size_t> {};

TEST_P(TransportSizes, DeliversChunksOfEverySize) {
  auto options = TwoNodes::default_options();
  options.chunk_bytes = 256 << 10;
  OpenNodes nodes(options);
  const auto source = std::make_shared<RecordingSource>(GetParam());
  nodes.submit(source, 0, 40);
  nodes.expect_delivered_once(*source, 40);
}

INSTANTIATE_TEST_SUITE_P(Bytes, TransportSizes,
                         ::testing::Values(1, 7, 2048, 2049, 8191, 65535, 131072, 262143, 262144));

TEST(Transport, SendsNoMoreThanTheWindowsWhileNothingIsAcknowledged) {
  auto options = TwoNodes::default_options();
  options.flows_per_link = 2;
  options.window_bytes = 4 * (32 << 10);
  OpenNodes nodes(options);
  nodes.b_stands_still = true;
  const auto source = nodes.submit(32 << 10, 100);
  for (int i = 0; i < 500; ++i) nodes.step();
  // Four chunks fill a window.
  EXPECT_EQ(source->given, 2u * 4u);
  EXPECT_TRUE(source->settled.empty());
  nodes.b_stands_still = false;
  nodes.expect_delivered_once(*source, 100);
}

TEST(Transport, BoundsTheNumberOfSmallChunksOnTheirWay) {
  auto options = TwoNodes::default_options();
  options.flows_per_link = 1;
  options.window_bytes = 1 << 20;
  OpenNodes nodes(options);
  nodes.b_stands_still = true;
  const auto source = nodes.submit(8, 1000);
  for (int i = 0; i < 500; ++i) nodes.step();
  EXPECT_EQ(source->given, 256u);
  nodes.b_stands_still = false;
  nodes.expect_delivered_once(*source, 1000);
}

TEST(Transport, ASourceMaySubmitFromWithinItsCallbacks) {
  OpenNodes nodes;
  const auto source = std::make_shared<RecordingSource>(1024);
  uint64_t next = 1;
  source->on_settled = [&] {
    if (next < 500) nodes.submit(source, next++, 1);
  };
  nodes.submit(source, 0, 1);
  nodes.expect_delivered_once(*source, 500);
}

TEST(Transport, DropsInSilenceAChunkWhoseOperationIsOver) {
  OpenNodes nodes;
  const auto over = std::make_shared<RecordingSource>(1024);
  over->is_over = true;
  const auto alive = std::make_shared<RecordingSource>(1024);
  nodes.submit(over, 1000, 10);
  nodes.submit(alive, 0, 10);
  ASSERT_TRUE(nodes.run_until([&] { return alive->settled.size() == 10; }));
  EXPECT_TRUE(over->settled.empty());
  EXPECT_TRUE(over->not_settled.empty());
  EXPECT_TRUE(each_exactly(nodes.b->sink.arrived, 10, 1));
}

TEST(Transport, LinksInBothDirectionsAreIndependent) {
  OpenNodes nodes;
  EXPECT_EQ(nodes.b->link_to(*nodes.a), nullptr);
  ASSERT_TRUE(nodes.open(*nodes.b, *nodes.a));
  const auto source = std::make_shared<RecordingSource>(4096);
  for (uint64_t i = 0; i < 100; ++i) {
    nodes.b->link_to(*nodes.a)->submit(RecordingSource::chunk(source, i));
  }
  ASSERT_TRUE(nodes.settles(*source, 100));
  EXPECT_TRUE(each_exactly(nodes.a->sink.arrived, 100, 1));
}

TEST(Transport, OpeningAnOpenLinkSucceedsWithoutNewFlows) {
  OpenNodes nodes;
  const size_t messages = nodes.a->control.sent.size();
  ASSERT_TRUE(nodes.open());
  EXPECT_EQ(nodes.a->control.sent.size(), messages);
}

TEST(Transport, ClosesLinksThatNoJobUses) {
  OpenNodes nodes;
  Transport& transport = nodes.a->transport();
  const NodeId b = nodes.b->id();
  EXPECT_FALSE(transport.close_idle_links({b}, 0)) << "there is no idle one";
  EXPECT_TRUE(transport.close_idle_links({}, 600'000)) << "idle, but not for long";
  nodes.step();
  ASSERT_NE(nodes.a->link_to(*nodes.b), nullptr);

  // Nothing has come over them for a while, or the other side would call it a failure.
  const uint64_t opened_ms = uv_now(nodes.control_loop->uv());
  ASSERT_TRUE(
      nodes.run_until([&] { return uv_now(nodes.control_loop->uv()) - opened_ms >= 1000; }));
  EXPECT_FALSE(transport.close_idle_links({}, 500)) << "none is left";
  ASSERT_TRUE(nodes.run_until([&] {
    return transport.counters().flows_open == 0 && nodes.b->transport().counters().flows_open == 0;
  }));
  EXPECT_EQ(nodes.a->link_to(*nodes.b), nullptr);
  EXPECT_EQ(transport.counters().flow_failures, 0u);
  EXPECT_EQ(nodes.b->transport().counters().flow_failures, 0u);
  EXPECT_TRUE(nodes.open());
}

TEST(Transport, AnUnknownPeerIsUnavailable) {
  TwoNodes nodes;
  std::optional<Status> outcome;
  nodes.a->transport().open_link(99, [&](Status status) { outcome = status; });
  ASSERT_TRUE(nodes.run_until([&] { return outcome.has_value(); }));
  EXPECT_EQ(outcome->code(), StatusCode::Unavailable);
}

TEST(Transport, APeerThatDoesNotAnswerIsNamedWithinTheDeadline) {
  auto options = TwoNodes::default_options();
  // A flow gives up after four fifths of it, and what it says must come before the rest is over.
  options.open_timeout_ms = 5000;
  TwoNodes nodes(options);
  nodes.b->control.is_silent = true;
  const Status status = nodes.open();
  EXPECT_EQ(status.code(), StatusCode::DeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("'node2' (127.0.0.1) on rail lo"));
  EXPECT_EQ(nodes.a->link_to(*nodes.b), nullptr);
  nodes.b->control.is_silent = false;
  EXPECT_TRUE(nodes.open_eventually());  // nothing is left of the first attempt
}

TEST(Transport, ALostPeerSettlesEverythingAsNotAcknowledged) {
  OpenNodes nodes;
  nodes.b_stands_still = true;
  const auto source = nodes.submit(64 << 10, 100);
  for (int i = 0; i < 100; ++i) nodes.step();
  ASSERT_GT(source->given, 0u);
  Link* link = nodes.a->link_to(*nodes.b);
  ASSERT_NE(link, nullptr);
  nodes.a->transport().on_peer_lost(nodes.b->id());
  ASSERT_TRUE(nodes.run_until([&] { return source->not_settled.size() == 100; }));
  EXPECT_TRUE(each_exactly(source->not_settled, 100, 1));
  EXPECT_TRUE(source->settled.empty());
  EXPECT_EQ(nodes.a->link_to(*nodes.b), nullptr);
  EXPECT_EQ(nodes.a->transport().counters().flows_open, 0u);
}

TEST(Transport, ALostPeerEndsAnAttemptToOpen) {
  TwoNodes nodes;
  nodes.b->control.is_silent = true;
  std::optional<Status> outcome;
  nodes.a->transport().open_link(nodes.b->id(), [&](Status status) { outcome = status; });
  nodes.step();
  nodes.a->transport().on_peer_lost(nodes.b->id());
  ASSERT_TRUE(nodes.run_until([&] { return outcome.has_value(); }));
  EXPECT_EQ(outcome->code(), StatusCode::Unavailable);
}

TEST(Transport, ASenderWithMoreLoopsThanTheReceiverFindsOneForEach) {
  // As FlowOpen says it: the sender's sixth loop, of seven.
  TwoNodes nodes;
  flatbuffers::FlatBufferBuilder message;
  ASSERT_TRUE(nodes.open());
  const auto& open =
      *proto::GetControlMessage(nodes.a->control.sent.front().data())->body_as_FlowOpen();
  auto offers = read_flow_open(open).value();
  offers.resize(1);
  offers[0].io_loop = 5;
  write_flow_open(message, open.link_nonce(), 7, 4, 65536,
                  TwoNodes::default_options().transport_name(), offers);
  const size_t answers = nodes.b->control.sent.size();
  nodes.b->transport().on_control_message(nodes.a->control.self(),
                                          *proto::GetControlMessage(message.GetBufferPointer()));
  ASSERT_TRUE(nodes.run_until([&] { return nodes.b->control.sent.size() > answers; }));
  const auto* accept =
      proto::GetControlMessage(nodes.b->control.sent.back().data())->body_as_FlowAccept();
  ASSERT_NE(accept, nullptr);
  EXPECT_EQ(accept->flows()->Get(0)->io_loop(), 5);
}

TEST(Transport, AnAnswerThatComesTwiceCountsOnce) {
  TwoNodes nodes;
  nodes.b->control.is_silent = true;
  std::optional<Status> outcome;
  nodes.a->transport().open_link(nodes.b->id(), [&](const Status& status) { outcome = status; });
  const auto is_answered = [&] {
    return !nodes.b->control.sent.empty() &&
           proto::GetControlMessage(nodes.b->control.sent.back().data())->body_as_FlowAccept();
  };
  ASSERT_TRUE(nodes.run_until(is_answered));
  for (const auto& sent : std::vector(nodes.b->control.sent)) {
    const auto& message = *proto::GetControlMessage(sent.data());
    // The second one while the first one's workers are being connected on their thread.
    for (int i = 0; i < 2; ++i)
      nodes.a->transport().on_control_message(nodes.b->control.self(), message);
  }
  nodes.b->control.is_silent = false;
  ASSERT_TRUE(nodes.run_until([&] { return outcome.has_value(); }));
  EXPECT_TRUE(outcome->is_ok()) << outcome->to_string();
}

TEST(Transport, ASenderOfLargerChunksThanTheReceiverTakesIsRefused) {
  auto larger = TwoNodes::default_options();
  larger.chunk_bytes *= 2;
  TwoNodes nodes(larger, TwoNodes::default_options());
  const Status status = nodes.open();
  ASSERT_FALSE(status.is_ok());
  EXPECT_THAT(status.message(), HasSubstr("131072"));
  EXPECT_THAT(status.message(), HasSubstr("transport.chunk_bytes is 65536"));
  EXPECT_TRUE(nodes.open(*nodes.b, *nodes.a)) << "smaller ones are taken";
}

TEST(Transport, RefusesImpossibleOptions) {
  auto loop = std::move(Loop::create("test")).value();
  DeliveringControlPlane control(*loop, {1, "node1", "127.0.0.1", 7410});
  RecordingSink sink;
  auto options = TwoNodes::default_options();
  options.rails = {"nosuch0"};
  auto made = Transport::create(*loop, {{loop.get(), &sink}}, options, control);
  ASSERT_FALSE(made.is_ok());
  EXPECT_THAT(made.status().message(), HasSubstr("nosuch0"));
  options = TwoNodes::default_options();
  options.flows_per_link = 0;
  EXPECT_FALSE(Transport::create(*loop, {{loop.get(), &sink}}, options, control).is_ok());
  options = TwoNodes::default_options();
  options.chunk_bytes = proto::kChunkBytesMax + 1;
  EXPECT_FALSE(Transport::create(*loop, {{loop.get(), &sink}}, options, control).is_ok());
  EXPECT_FALSE(Transport::create(*loop, {}, TwoNodes::default_options(), control).is_ok());
}

}  // namespace
}  // namespace braid::testing
