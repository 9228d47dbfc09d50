// SPDX-License-Identifier: Apache-2.0
// Peers that say nothing, are lost, and connect again.
#include "control/control_connection.h"
#include "control_plane_testing.h"

namespace braid::testing {
namespace {

// A daemon that has shaken hands and then does nothing.
struct SilentPeer final : QuietOwner {
  void on_message(ControlConnection&, const FrameNumbers& numbers,
                  const proto::ControlMessage& message, size_t) override {
    if (const auto* heartbeat = message.body_as_Heartbeat()) heard_ms = heartbeat->sent_ms();
    if (const auto* ready = message.body_as_JobReady()) {
      taken.emplace_back(numbers.sequence, ready->job_key());
    }
    if (const auto* goodbye = message.body_as_Goodbye())
      goodbyes.push_back(goodbye->reason()->str());
    acknowledged = numbers.acknowledged;
  }

  uint64_t heard_ms = 0;  // what the latest heartbeat carried
  uint64_t acknowledged = 0;
  std::vector<std::pair<uint64_t, uint64_t>> taken;  // numbers and job keys of JobReady
  std::vector<std::string> goodbyes;
};

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

  using Key = std::shared_ptr<const NodeKey>;
  static Key new_key() { return std::make_shared<const NodeKey>(); }

  // `generation`: how often this peer says that it has lost a.
  std::unique_ptr<ControlConnection> join(SilentPeer& peer, const std::string& name, uint16_t port,
                                          const Key& key = new_key(), uint64_t generation = 0) {
    HandshakeOptions as;
    as.node_key = key;
    as.generation = [generation](NodeId) { return generation; };
    as.self = Peer{key->id(), name, "127.0.0.2", port};
    as.cluster_key = options("a").cluster_key;
    const auto address = SocketAddress::parse("127.0.0.1", a_->self().port);
    return ControlConnection::connect(*loop_, *address, as, 5000, peer);
  }

  RecordingHandler on_a_;
  std::unique_ptr<ControlPlane> a_;
};

TEST_F(ControlPlaneSilenceTest, LosesAPeerWhoseMessageHasNoNumberOrWhoseHeartbeatHasOne) {
  const auto loss_after = [this](const flatbuffers::FlatBufferBuilder& message, uint64_t number) {
    a_ = create(options("a"), on_a_);  // one that is patient
    on_a_.lost.clear();
    SilentPeer peer;
    const auto connection = join(peer, "b", 7410);
    EXPECT_TRUE(run_until([&] { return peer.is_established; }));
    EXPECT_TRUE(connection->send({number, 0}, {message.GetBufferPointer(), message.GetSize()}));
    EXPECT_TRUE(run_until([&] { return !on_a_.lost.empty(); }));
    return on_a_.lost.at(0).second;
  };
  EXPECT_TRUE(contains(loss_after(job_ready(7), 0), "JobReady without a number"));
  EXPECT_TRUE(contains(loss_after(heartbeat(1, 0), 1), "Heartbeat with a number"));
  EXPECT_TRUE(on_a_.numbers.empty());
}

TEST_F(ControlPlaneSilenceTest, LosesASilentPeer) {
  SilentPeer silent;
  const auto connection = join(silent, "b", 7410);
  ASSERT_TRUE(run_until([&] { return !on_a_.lost.empty(); }));
  EXPECT_TRUE(silent.is_established);
  EXPECT_TRUE(contains(on_a_.lost[0].second, "node 'b' (127.0.0.2:7410) is silent: heard last "));
  ASSERT_TRUE(run_until([&] { return !silent.broken.empty(); }));
  ASSERT_EQ(silent.goodbyes.size(), 1u) << "it hears why";
  EXPECT_TRUE(contains(silent.goodbyes[0], "node 'b' (127.0.0.2:7410) is silent: heard last "));
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
  const auto says = [&](const flatbuffers::FlatBufferBuilder& message, uint64_t number = 0) {
    ASSERT_TRUE(
        connection->send({number, 0}, {message.GetBufferPointer(), message.GetSize()}).is_ok());
    run_rounds();
  };
  says(job_ready(1), 1);
  says(heartbeat(1, 0));
  says(heartbeat(1, 1));
  EXPECT_EQ(result.calls, 0);
  ASSERT_TRUE(run_until([&] { return silent.heard_ms > long_ago; }));
  says(heartbeat(1, silent.heard_ms));
  ASSERT_TRUE(run_until([&] { return result.calls > 0; }));
  EXPECT_EQ(result.peer.name, "b") << result.status.to_string();
  EXPECT_TRUE(on_a_.lost.empty());
}

class ControlPlaneAgainTest : public ControlPlaneSilenceTest {
 protected:
  ControlPlaneAgainTest() {
    a_ = create(fast("a", "127.0.0.1", 10'000), on_a_);
    first_ = join(before_, "b", 7410, key_);
    EXPECT_TRUE(run_until([&] { return before_.is_established && !a_->peers().empty(); }));
  }
  Status a_sends(uint64_t number) {
    auto message = job_ready(number);
    return a_->send(key_->id(), message);
  }
  // JobReady, or a heartbeat where the message has no number.
  static Status send(ControlConnection& connection, const FrameNumbers& numbers, uint64_t number) {
    const auto message = numbers.sequence == 0 ? heartbeat(1, 0) : job_ready(number);
    return connection.send(numbers, {message.GetBufferPointer(), message.GetSize()});
  }

  const Key key_ = new_key();
  SilentPeer before_;
  SilentPeer after_;
  std::unique_ptr<ControlConnection> first_;
};

TEST_F(ControlPlaneAgainTest, APeerThatHasLostUsIsLostAndMetAgain) {
  ASSERT_TRUE(a_sends(1).is_ok());
  const auto alive = join(after_, "b", 7410, key_, 1);
  ASSERT_TRUE(run_until([&] { return after_.is_established && !on_a_.lost.empty(); }));
  EXPECT_TRUE(contains(on_a_.lost[0].second, "has lost us and connects again"));
  EXPECT_EQ(a_->peers().size(), 1u);
  ASSERT_TRUE(run_until([&] { return !before_.broken.empty(); }));
  EXPECT_EQ(after_.broken, "");
  // What was before is over, and numbers begin anew.
  ASSERT_TRUE(a_sends(2).is_ok());
  ASSERT_TRUE(run_until([&] { return !after_.taken.empty(); }));
  EXPECT_EQ(after_.taken[0], std::make_pair(uint64_t{1}, uint64_t{2}));
}

// It shook hands before it lost us, and is slow.
TEST_F(ControlPlaneAgainTest, AConnectionFromBeforeALossIsNotTaken) {
  const auto newer = join(after_, "b", 7410, key_, 2);
  ASSERT_TRUE(run_until([&] { return after_.is_established && !on_a_.lost.empty(); }));
  SilentPeer late;
  const auto older = join(late, "b", 7410, key_, 1);
  ASSERT_TRUE(run_until([&] { return !late.broken.empty(); }));
  run_rounds();
  EXPECT_EQ(after_.broken, "");
  EXPECT_EQ(on_a_.lost.size(), 1u);
}

TEST_F(ControlPlaneAgainTest, WhatAPeerHasNotTakenIsSentAgainOnTheNextConnection) {
  for (uint64_t i = 1; i <= 5; ++i) ASSERT_TRUE(a_sends(i).is_ok());
  ASSERT_TRUE(run_until([&] { return before_.taken.size() == 5; }));
  ASSERT_TRUE(send(*first_, {0, 2}, 0).is_ok());  // it says that it has taken two of them
  run_rounds();
  const auto second = join(after_, "b", 7410, key_);
  ASSERT_TRUE(run_until([&] { return after_.taken.size() == 3; }));
  ASSERT_TRUE(a_sends(6).is_ok());
  ASSERT_TRUE(run_until([&] { return after_.taken.size() == 4; }));
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(after_.taken[i], std::make_pair(i + 3, i + 3));
  EXPECT_EQ(before_.taken.size(), 5u) << "the newest connection is used for sending";
  EXPECT_TRUE(on_a_.lost.empty());
}

TEST_F(ControlPlaneAgainTest, WhatComesTwiceOrOnAnOlderConnectionIsTakenOnceAndInOrder) {
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(send(*first_, {i, 0}, i).is_ok());
  ASSERT_TRUE(run_until([&] { return on_a_.numbers.size() == 3; }));
  const auto second = join(after_, "b", 7410, key_);
  ASSERT_TRUE(run_until([&] { return after_.is_established; }));
  for (uint64_t i = 2; i <= 5; ++i) ASSERT_TRUE(send(*second, {i, 0}, i).is_ok());
  ASSERT_TRUE(run_until([&] { return on_a_.numbers.size() == 5; }));
  for (uint64_t i = 4; i <= 6; ++i) ASSERT_TRUE(send(*first_, {i, 0}, i).is_ok());
  ASSERT_TRUE(run_until([&] { return on_a_.numbers.size() == 6; }));
  run_rounds();
  for (uint64_t i = 0; i < 6; ++i) EXPECT_EQ(on_a_.numbers[i].second, i + 1);
  EXPECT_EQ(on_a_.numbers.size(), 6u);
  ASSERT_TRUE(run_until([&] { return after_.acknowledged == 6; }));
}

TEST_F(ControlPlaneAgainTest, APeerThatLeavesMessagesOutIsLost) {
  ASSERT_TRUE(send(*first_, {2, 0}, 1).is_ok());
  ASSERT_TRUE(run_until([&] { return !on_a_.lost.empty(); }));
  EXPECT_TRUE(contains(on_a_.lost[0].second, "message 2 came where 1 was due"));
  EXPECT_TRUE(on_a_.numbers.empty());
}

}  // namespace
}  // namespace braid::testing
