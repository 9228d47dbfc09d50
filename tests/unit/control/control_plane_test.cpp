// SPDX-License-Identifier: Apache-2.0
#include "control/control_plane.h"

#include "control_plane_testing.h"

namespace braid::testing {
namespace {

flatbuffers::FlatBufferBuilder flow_refuse(size_t bytes) {
  flatbuffers::FlatBufferBuilder builder;
  const std::string reason(bytes, 'x');
  const auto body = proto::CreateFlowRefuseDirect(builder, 0, 0, 0, reason.c_str());
  builder.Finish(
      proto::CreateControlMessage(builder, proto::ControlBody::FlowRefuse, body.Union()));
  return builder;
}

TEST_F(TwoControlPlanesTest, CarriesMessagesBothWaysInOrder) {
  const Peer found = connect(*a_, b_->self());
  EXPECT_EQ(found.id, b_->self().id);
  EXPECT_EQ(found.name, "b");
  ASSERT_TRUE(run_until([&] { return b_->find(a_->self().id) != nullptr; }));
  EXPECT_EQ(a_->find(b_->self().id)->port, b_->self().port);

  constexpr uint64_t kMessages = 5000;
  for (uint64_t i = 0; i < kMessages; ++i) {
    send(*a_, *b_, i);
    send(*b_, *a_, i);
  }
  EXPECT_TRUE(on_a_.numbers.empty()) << "never from within send()";
  ASSERT_TRUE(run_until(
      [&] { return on_a_.numbers.size() == kMessages && on_b_.numbers.size() == kMessages; }));
  for (uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(on_b_.numbers[i], std::make_pair(std::string("a"), i));
    ASSERT_EQ(on_a_.numbers[i], std::make_pair(std::string("b"), i));
  }
  EXPECT_EQ(a_->counters().messages_sent, kMessages);
  EXPECT_EQ(b_->counters().messages_received, kMessages);
  EXPECT_TRUE(on_a_.lost.empty());
}

TEST_F(TwoControlPlanesTest, CarriesAMessageOfManyMegabytes) {
  connect(*a_, b_->self());
  auto large = flow_refuse(15 << 20);
  ASSERT_TRUE(a_->send(b_->self().id, large).is_ok());
  auto too_large = flow_refuse(17 << 20);
  EXPECT_EQ(a_->send(b_->self().id, too_large).code(), StatusCode::InvalidArgument);
  ASSERT_TRUE(run_until([&] { return on_b_.messages.size() == 1; }));
  EXPECT_EQ(on_b_.messages[0].second, proto::ControlBody::FlowRefuse);
}

TEST_F(ControlPlaneTest, CarriesEncryptedMessages) {
  RecordingHandler on_a;
  RecordingHandler on_b;
  ControlPlaneOptions with_a = options("a");
  ControlPlaneOptions with_b = options("b", "127.0.0.2");
  with_a.encrypts = with_b.encrypts = true;
  const auto a = create(with_a, on_a);
  const auto b = create(with_b, on_b);
  connect(*a, b->self());
  constexpr uint64_t kMessages = 1000;
  for (uint64_t i = 0; i < kMessages; ++i) send(*a, *b, i);
  auto large = flow_refuse(15 << 20);
  ASSERT_TRUE(a->send(b->self().id, large).is_ok());
  ASSERT_TRUE(run_until([&] { return on_b.messages.size() == kMessages + 1; }));
  for (uint64_t i = 0; i < kMessages; ++i)
    ASSERT_EQ(on_b.numbers[i], std::make_pair(std::string("a"), i));
  EXPECT_TRUE(on_a.lost.empty() && on_b.lost.empty());
}

TEST_F(ControlPlaneTest, RefusesANodeThatDoesNotEncryptAsItself) {
  RecordingHandler on_a;
  RecordingHandler on_b;
  ControlPlaneOptions with_a = options("a");
  with_a.encrypts = true;
  const auto a = create(with_a, on_a);
  const auto b = create(options("b", "127.0.0.2"), on_b);
  for (const auto& [from, to] : {std::pair{a.get(), b.get()}, std::pair{b.get(), a.get()}}) {
    ConnectResult result;
    from->connect(to->self().address, to->self().port, result.callback());
    ASSERT_TRUE(run_until([&] { return result.calls == 1; }));
    for (const char* name : {"transport.encryption", "on node 'a'", "on node 'b'", "set the same"})
      EXPECT_TRUE(contains(result.status.message(), name)) << result.status.message();
  }
}

TEST_F(TwoControlPlanesTest, BoundsWhatWaitsToBeSent) {
  connect(*a_, b_->self());
  // The loop does not run meanwhile, so that nothing is read.
  Status status;
  int taken = 0;
  for (; taken < 100 && status; ++taken) {
    auto message = flow_refuse(10 << 20);
    status = a_->send(b_->self().id, message);
  }
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
  EXPECT_TRUE(contains(status.message(), "node 'b' (127.0.0.2:"));
  EXPECT_GT(taken, 2);
  EXPECT_TRUE(on_a_.lost.empty()) << "never from within send()";
  // Nobody may go on as if it had been sent: what relies on it ends with the peer.
  ASSERT_TRUE(run_until([&] { return !on_a_.lost.empty() && !on_b_.lost.empty(); }));
  EXPECT_TRUE(contains(on_a_.lost[0].second, "does not take what it is sent"));
  EXPECT_TRUE(contains(on_b_.lost[0].second, "node 'a' (127.0.0.1:"));
}

TEST_F(TwoControlPlanesTest, ConnectsBothWaysAtOnce) {
  ConnectResult from_a;
  ConnectResult from_b;
  a_->connect(b_->self().address, b_->self().port, from_a.callback());
  b_->connect(a_->self().address, a_->self().port, from_b.callback());
  ASSERT_TRUE(run_until([&] { return from_a.calls + from_b.calls == 2; }));
  EXPECT_EQ(from_a.peer.name, "b");
  EXPECT_EQ(from_b.peer.name, "a");
  EXPECT_EQ(a_->peers().size(), 1u);
  EXPECT_EQ(a_->peer_count(), 1u);
  EXPECT_EQ(b_->peers().size(), 1u);
  for (uint64_t i = 0; i < 100; ++i) {
    send(*a_, *b_, i);
    send(*b_, *a_, i);
  }
  ASSERT_TRUE(
      run_until([&] { return on_a_.numbers.size() == 100 && on_b_.numbers.size() == 100; }));
  b_.reset();
  ASSERT_TRUE(run_until([&] { return !on_a_.lost.empty(); }));
  run_rounds();
  EXPECT_EQ(on_a_.lost.size(), 1u) << "once, though there were two connections";
  EXPECT_TRUE(a_->peers().empty());
}

TEST_F(TwoControlPlanesTest, KnowsTheRoundTripToAPeer) {
  EXPECT_EQ(a_->round_trip_ns(b_->self().id), std::nullopt);
  connect(*a_, b_->self());
  ASSERT_TRUE(run_until([&] { return b_->find(a_->self().id) != nullptr; }));
  EXPECT_GT(a_->round_trip_ns(b_->self().id).value_or(0), 0u);
  EXPECT_GT(b_->round_trip_ns(a_->self().id).value_or(0), 0u);
}

TEST_F(TwoControlPlanesTest, SharesOneAttemptAndThenTheConnection) {
  ConnectResult results[3];
  for (auto& result : results) a_->connect(b_->self().address, b_->self().port, result.callback());
  ASSERT_TRUE(
      run_until([&] { return results[0].calls + results[1].calls + results[2].calls == 3; }));
  EXPECT_EQ(connect(*a_, b_->self()).id, b_->self().id);
  // It was accepted there, and needs no second one back.
  ASSERT_TRUE(run_until([&] { return b_->find(a_->self().id) != nullptr; }));
  EXPECT_EQ(connect(*b_, a_->self()).id, a_->self().id);
  EXPECT_EQ(a_->peers().size(), 1u);
}

TEST_F(TwoControlPlanesTest, ConnectsAnewWhereAConnectionIs) {
  connect(*a_, b_->self());
  ConnectResult again;
  a_->connect_anew("127.0.0.2", b_->self().port, again.callback());
  EXPECT_EQ(again.calls, 0) << "never from within the call";
  ASSERT_TRUE(run_until([&] { return again.calls > 0; }));
  EXPECT_TRUE(again.status.is_ok()) << again.status.to_string();
  EXPECT_EQ(again.peer.id, b_->self().id);
  // What is sent meanwhile comes, whichever connection it takes.
  for (uint64_t i = 0; i < 10; ++i) send(*a_, *b_, i);
  ASSERT_TRUE(run_until([&] { return on_b_.numbers.size() == 10; }));

  // Where nobody listens any more a known peer is no answer.
  ConnectResult refused;
  a_->connect_anew("127.0.0.2", free_port("127.0.0.2"), refused.callback());
  ASSERT_TRUE(run_until([&] { return refused.calls > 0; }));
  EXPECT_EQ(refused.status.code(), StatusCode::Unavailable);
  EXPECT_TRUE(on_a_.lost.empty());
}

TEST_F(ControlPlaneTest, ReachesItself) {
  RecordingHandler on_a;
  auto a = create(options("a"), on_a);
  const uint16_t port = a->self().port;
  EXPECT_NE(port, 0);
  // Its address; a name for it; another of the host's own addresses, where nobody else listens.
  for (const char* host : {"127.0.0.1", "localhost", "127.0.1.1"}) {
    ConnectResult result;
    a->connect(host, port, result.callback());
    EXPECT_EQ(result.calls, 0);
    ASSERT_TRUE(run_until([&] { return result.calls == 1; }));
    EXPECT_EQ(result.peer.id, a->self().id) << host << ": " << result.status.to_string();
  }
  EXPECT_EQ(a->find(a->self().id)->name, "a");
  EXPECT_TRUE(a->peers().empty());

  on_a.react = [&, more = 1](const Peer& from) mutable {
    if (more-- <= 0) return;
    auto again = job_ready(3);
    EXPECT_TRUE(a->send(from.id, again).is_ok());
  };
  for (uint64_t i = 1; i <= 2; ++i) {
    auto message = job_ready(i);
    ASSERT_TRUE(a->send(a->self().id, message).is_ok());
  }
  EXPECT_TRUE(on_a.numbers.empty()) << "never from within send()";
  ASSERT_TRUE(run_until([&] { return on_a.numbers.size() == 3; }));
  for (uint64_t i = 1; i <= 3; ++i)
    EXPECT_EQ(on_a.numbers[i - 1], std::make_pair(std::string("a"), i));
}

// Its address says nothing about who listens there (a forwarded port, say): the handshake does.
TEST_F(ControlPlaneTest, RecognisesItselfByTheHandshake) {
  RecordingHandler on_a;
  ControlPlaneOptions all_addresses = options("a");
  all_addresses.listen_address = "0.0.0.0";
  all_addresses.node_key = std::make_shared<const NodeKey>();
  all_addresses.self.port = 1;  // what others see of it
  auto a = create(all_addresses, on_a);
  // The forwarder: a connection to `front` is handed to `a`'s handshake as it is.
  RecordingHandler on_front;
  ControlPlaneOptions same = options("a", "127.0.0.3");
  same.node_key = all_addresses.node_key;
  auto front = create(same, on_front);
  ConnectResult result;
  a->connect("127.0.0.3", front->self().port, result.callback());
  ASSERT_TRUE(run_until([&] { return result.calls == 1; }));
  EXPECT_EQ(result.peer.id, a->self().id) << result.status.to_string();
  run_rounds();
  EXPECT_TRUE(a->peers().empty());
  EXPECT_TRUE(front->peers().empty());
  EXPECT_EQ(front->counters().connections_refused, 0u);
  EXPECT_TRUE(on_a.lost.empty());
}

// b listens at all addresses of 127/8: to a each of them is a new one, until the handshake says who
// is there.
TEST_F(ControlPlaneTest, AnotherNameOfAPeerIsNoOtherPeer) {
  RecordingHandler on_a;
  RecordingHandler on_b;
  auto a = create(options("a"), on_a);
  ControlPlaneOptions all_addresses = options("b", "127.0.0.2");
  all_addresses.listen_address = "0.0.0.0";
  auto b = create(all_addresses, on_b);
  for (int round = 0; round < 2; ++round) {
    for (int i = 2; i < 30; ++i) {
      const Peer peer = connect(*a, {0, "", "127.0.0." + std::to_string(i), b->self().port});
      ASSERT_EQ(peer.id, b->self().id);
    }
  }
  EXPECT_EQ(a->peers().size(), 1u);
  EXPECT_EQ(b->peers().size(), 1u);
  run_rounds();
  auto message = job_ready(1);
  ASSERT_TRUE(a->send(b->self().id, message).is_ok());
  ASSERT_TRUE(run_until([&] { return on_b.numbers.size() == 1; }));
  EXPECT_TRUE(on_a.lost.empty());
  b.reset();
  ASSERT_TRUE(run_until([&] { return !on_a.lost.empty(); }));
  run_rounds();
  EXPECT_EQ(on_a.lost.size(), 1u);
}

TEST_F(ControlPlaneTest, TriesTheNextAddressOfAName) {
  RecordingHandler on_a;
  RecordingHandler on_b;
  auto a = create(options("a", "127.0.0.2"), on_a);
  auto b = create(options("b"), on_b);
  // Where "localhost" is ::1 as well, nobody listens there.
  EXPECT_EQ(connect(*a, {0, "", "localhost", b->self().port}).id, b->self().id);
}

TEST_F(ControlPlaneTest, SpeaksIPv6) {
  RecordingHandler on_a;
  RecordingHandler on_b;
  auto a = ControlPlane::create(*loop_, clock_, options("a", "::1"), on_a);
  if (!a && a.status().cause() == UV_EADDRNOTAVAIL) GTEST_SKIP() << "this host has no ::1";
  ASSERT_TRUE(a.is_ok()) << a.status().to_string();
  auto b = create(options("b"), on_b);
  const Peer found = connect(*b, (*a)->self());
  EXPECT_EQ(found.name, "a");
  a->reset();
  ASSERT_TRUE(run_until([&] { return !on_b.lost.empty(); }));
  EXPECT_TRUE(contains(on_b.lost[0].second, "node 'a' ([::1]:"));
}

TEST_F(TwoControlPlanesTest, SaysThatAPeerHasClosed) {
  const Peer peer = connect(*a_, b_->self());
  auto last_words = job_ready(1);
  ASSERT_TRUE(run_until([&] { return b_->find(a_->self().id) != nullptr; }));
  ASSERT_TRUE(b_->send(a_->self().id, last_words).is_ok());
  b_.reset();
  ASSERT_TRUE(run_until([&] { return !on_a_.lost.empty(); }));
  EXPECT_EQ(on_a_.numbers.size(), 1u) << "what it sent before is not lost";
  EXPECT_EQ(on_a_.lost[0].first, "b");
  EXPECT_EQ(on_a_.lost[0].second,
            "node 'b' (127.0.0.2:" + std::to_string(peer.port) + ") closed its control connection");
  EXPECT_EQ(a_->find(peer.id), nullptr);
  auto message = job_ready(2);
  EXPECT_EQ(a_->send(peer.id, message).code(), StatusCode::Unavailable);
  run_rounds();
  EXPECT_EQ(on_a_.lost.size(), 1u);
}

// Time that only this process's clock shows (it was suspended): its peers were not silent.
TEST_F(ControlPlaneTest, DoesNotTakeItsOwnStandstillForSilence) {
  struct JumpingClock final : Clock {
    uint64_t now_ns() const override { return system.now_ns() + offset_ns; }
    SystemClock system;
    uint64_t offset_ns = 0;
  } jumping;
  RecordingHandler on_a;
  RecordingHandler on_b;
  ControlPlaneOptions fast = options("a");
  fast.heartbeat_interval_ms = 20;
  auto a = std::move(ControlPlane::create(*loop_, jumping, fast, on_a)).value();
  ControlPlaneOptions fast_b = options("b", "127.0.0.2");
  fast_b.heartbeat_interval_ms = 20;
  auto b = create(fast_b, on_b);
  connect(*a, b->self());
  jumping.offset_ns += 60'000'000'000;
  const uint64_t until = clock_.now_ms() + 200;
  ASSERT_TRUE(run_until([&] { return clock_.now_ms() > until; }));
  EXPECT_TRUE(on_a.lost.empty()) << on_a.lost[0].second;
}

TEST_F(ControlPlaneTest, RefusesOptionsThatCannotWork) {
  RecordingHandler handler;
  const auto error = [&](const std::function<void(ControlPlaneOptions&)>& change) {
    ControlPlaneOptions changed = options("a");
    change(changed);
    return ControlPlane::create(*loop_, clock_, changed, handler).status().message();
  };
  EXPECT_TRUE(contains(error([](auto& o) { o.listen_address = "nowhere"; }), "'nowhere'"));
  EXPECT_TRUE(contains(error([](auto& o) { o.peer_timeout_ms = o.heartbeat_interval_ms; }),
                       "control.peer_timeout_ms"));
  EXPECT_TRUE(contains(error([](auto& o) {
                         o.cluster_key.clear();
                         o.listen_address = "0.0.0.0";
                       }),
                       "control.cluster_key_file"));
  auto first = create(options("a"), handler);
  EXPECT_TRUE(contains(error([&](auto& o) { o.listen_port = first->self().port; }),
                       "127.0.0.1:" + std::to_string(first->self().port)));
}

}  // namespace
}  // namespace braid::testing
