// SPDX-License-Identifier: Apache-2.0
// Peers that say nothing, are lost, and connect again.
#include "control_plane_testing.h"
#include "net/control_connection.h"

namespace braid::testing {
namespace {

// A daemon that has shaken hands and then does nothing.
struct SilentPeer final : ControlConnectionOwner {
  void on_established(ControlConnection&) override { is_established = true; }
  void on_message(ControlConnection&, const proto::ControlMessage& message) override {
    if (const auto* heartbeat = message.body_as_Heartbeat()) heard_ms = heartbeat->sent_ms();
  }
  void on_broken(ControlConnection&, const Status& reason) override { broken = reason.message(); }
  bool is_established = false;
  uint64_t heard_ms = 0;  // what the latest heartbeat carried
  std::string broken;
};

flatbuffers::FlatBufferBuilder heartbeat(uint64_t answered_ms) {
  flatbuffers::FlatBufferBuilder builder;
  const auto body = proto::CreateHeartbeat(builder, 1, answered_ms);
  builder.Finish(proto::CreateControlMessage(builder, proto::ControlBody::Heartbeat, body.Union()));
  return builder;
}

constexpr uint64_t kSomeHeartbeatsMs = 80;  // more than is overlooked

class ControlPlaneSilenceTest : public ControlPlaneTest {
 protected:
  ControlPlaneSilenceTest() { a_ = create(fast("a", "127.0.0.1", 100), on_a_); }

  static ControlPlaneOptions fast(const std::string& name, const std::string& address,
                                  uint32_t peer_timeout_ms) {
    ControlPlaneOptions result = options(name, address);
    result.heartbeat_interval_ms = 10;
    result.peer_timeout_ms = peer_timeout_ms;
    return result;
  }

  std::unique_ptr<ControlConnection> join(SilentPeer& peer, const std::string& name, uint16_t port,
                                          NodeId id = random_u64(), bool knows_a = false) {
    HandshakeOptions as;
    as.knows = [knows_a](NodeId) { return knows_a; };
    as.self = Peer{id, name, "127.0.0.2", port};
    as.cluster_key = options("a").cluster_key;
    const auto address = SocketAddress::parse("127.0.0.1", a_->self().port);
    return ControlConnection::connect(*loop_, *address, as, 5000, peer);
  }

  RecordingHandler on_a_;
  std::unique_ptr<ControlPlane> a_;
};

TEST_F(ControlPlaneSilenceTest, LosesASilentPeer) {
  SilentPeer silent;
  const auto connection = join(silent, "b", 7410);
  ASSERT_TRUE(run_until([&] { return !on_a_.lost.empty(); }));
  EXPECT_TRUE(silent.is_established);
  EXPECT_TRUE(contains(on_a_.lost[0].second, "node 'b' (127.0.0.2:7410) has been silent for "));
  ASSERT_TRUE(run_until([&] { return !silent.broken.empty(); }));
  EXPECT_EQ(on_a_.lost.size(), 1u);
  EXPECT_EQ(a_->counters().connections_refused, 0u);
}

// Both peers fall silent at once; when the first one is reported lost, its owner still sees the
// other one as connected.
TEST_F(ControlPlaneSilenceTest, ConnectToAPeerThatIsLostBeforeTheAnswerFailsOnce) {
  SilentPeer b;
  SilentPeer c;
  const auto connection_b = join(b, "b", 1001);
  const auto connection_c = join(c, "c", 1002);
  ConnectResult result;
  on_a_.react_to_loss = [&](const Peer& lost) {
    if (on_a_.lost.size() > 1) return;
    a_->connect("127.0.0.2", lost.port == 1001 ? 1002 : 1001, result.callback());
    EXPECT_EQ(result.calls, 0);
  };
  ASSERT_TRUE(run_until([&] { return on_a_.lost.size() == 2 && result.calls > 0; }));
  EXPECT_EQ(result.status.code(), StatusCode::Unavailable);
  run_rounds();
  EXPECT_EQ(result.calls, 1);
}

// A host that was gone for a moment: what begins now must not begin on what is about to break.
TEST_F(ControlPlaneSilenceTest, ConnectToASilentPeerWaitsForItsLossAndConnectsAnew) {
  RecordingHandler on_b;
  auto b = create(options("b", "127.0.0.2"), on_b);
  SilentPeer silent;
  const auto connection = join(silent, "b", b->self().port);
  ASSERT_TRUE(run_until([&] { return !a_->peers().empty(); }));
  const uint64_t until = clock_.now_ms() + kSomeHeartbeatsMs;
  ASSERT_TRUE(run_until([&] { return clock_.now_ms() > until; }));
  ConnectResult result;
  a_->connect("127.0.0.2", b->self().port, result.callback());
  on_a_.react_to_loss = [&](const Peer&) { EXPECT_EQ(result.calls, 0); };
  ASSERT_TRUE(run_until([&] { return result.calls > 0; }));
  EXPECT_EQ(on_a_.lost.size(), 1u);
  EXPECT_EQ(result.peer.id, b->self().id) << result.status.to_string();
  run_rounds();
  EXPECT_EQ(result.calls, 1);
}

// It sends, but what we send does not reach it: it will lose us, unless it hears us before.
TEST_F(ControlPlaneSilenceTest, ConnectToAPeerThatDoesNotHearUsIsAnsweredWhenItDoes) {
  a_ = create(fast("a", "127.0.0.1", 10'000), on_a_);
  SilentPeer silent;
  const auto connection = join(silent, "b", 7410);
  ASSERT_TRUE(run_until([&] { return !a_->peers().empty(); }));
  const uint64_t until = clock_.now_ms() + kSomeHeartbeatsMs;
  ASSERT_TRUE(run_until([&] { return clock_.now_ms() > until; }));
  ConnectResult result;
  a_->connect("127.0.0.2", 7410, result.callback());
  const uint64_t long_ago = silent.heard_ms;
  const auto says = [&](const flatbuffers::FlatBufferBuilder& message) {
    ASSERT_TRUE(connection->send({message.GetBufferPointer(), message.GetSize()}).is_ok());
    run_rounds();
  };
  says(job_ready(1));
  says(heartbeat(0));
  says(heartbeat(1));
  EXPECT_EQ(result.calls, 0);
  ASSERT_TRUE(run_until([&] { return silent.heard_ms > long_ago; }));
  says(heartbeat(silent.heard_ms));
  ASSERT_TRUE(run_until([&] { return result.calls > 0; }));
  EXPECT_EQ(result.peer.name, "b") << result.status.to_string();
  EXPECT_TRUE(on_a_.lost.empty());
}

class ControlPlaneAgainTest : public ControlPlaneSilenceTest {
 protected:
  ControlPlaneAgainTest() {
    ControlPlaneOptions patient = fast("a", "127.0.0.1", 10'000);
    patient.connect_timeout_ms = kConnectTimeoutMs;
    a_ = create(patient, on_a_);
    first_ = join(before_, "b", 7410, id_);
    EXPECT_TRUE(run_until([&] { return !a_->peers().empty(); }));
  }
  void pass(uint64_t ms) {
    const uint64_t until = clock_.now_ms() + ms;
    ASSERT_TRUE(run_until([&] { return clock_.now_ms() > until; }));
  }

  static constexpr uint32_t kConnectTimeoutMs = 300;
  const NodeId id_ = random_u64();
  SilentPeer before_;
  SilentPeer after_;
  std::unique_ptr<ControlConnection> first_;
};

TEST_F(ControlPlaneAgainTest, APeerThatHasLostUsIsLostAndMetAgain) {
  pass(kConnectTimeoutMs + 20);
  const auto alive = join(after_, "b", 7410, id_);
  ASSERT_TRUE(run_until([&] { return after_.is_established && !on_a_.lost.empty(); }));
  EXPECT_TRUE(contains(on_a_.lost[0].second, "has lost us and connects again"));
  EXPECT_EQ(a_->peers().size(), 1u);
  ASSERT_TRUE(run_until([&] { return !before_.broken.empty(); }));
  EXPECT_EQ(after_.broken, "");
}

TEST_F(ControlPlaneAgainTest, APeerThatKnowsUsMayHaveAnotherConnection) {
  pass(kConnectTimeoutMs + 20);
  const auto second = join(after_, "b", 7410, id_, true);
  ASSERT_TRUE(run_until([&] { return after_.is_established; }));
  run_rounds();
  EXPECT_TRUE(on_a_.lost.empty());
  EXPECT_EQ(before_.broken, "");
}

TEST_F(ControlPlaneSilenceTest, TwoThatConnectAtTheSameTimeHaveLostNothing) {
  a_ = create(fast("a", "127.0.0.1", 10'000), on_a_);
  const NodeId id = random_u64();
  SilentPeer first;
  SilentPeer second;
  const auto one = join(first, "b", 7410, id);
  const auto other = join(second, "b", 7410, id);
  ASSERT_TRUE(run_until([&] { return first.is_established && second.is_established; }));
  run_rounds();
  EXPECT_TRUE(on_a_.lost.empty());
  EXPECT_EQ(first.broken + second.broken, "");
}

}  // namespace
}  // namespace braid::testing
