// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "control/control_connection.h"
#include "control/control_plane.h"
#include "control/node_key.h"
#include "loop/loop.h"
#include "loop/tcp_listener.h"
#include "loop/timer.h"

namespace braid::testing {

// What a control plane told its owner.
struct RecordingHandler final : ControlPlaneHandler {
  void on_control_message(const Peer& from, const proto::ControlMessage& message) override {
    messages.emplace_back(from.name, message.body_type());
    if (const auto* ready = message.body_as_JobReady())
      numbers.emplace_back(from.name, ready->job_key());
    if (react) react(from);
  }
  void on_peer_lost(const Peer& peer, const Status& reason) override {
    lost.emplace_back(peer.name, reason.message());
    if (react_to_loss) react_to_loss(peer);
  }

  std::vector<std::pair<std::string, proto::ControlBody>> messages;
  std::vector<std::pair<std::string, uint64_t>> numbers;  // the job keys of JobReady messages
  std::vector<std::pair<std::string, std::string>> lost;
  std::function<void(const Peer&)> react;
  std::function<void(const Peer&)> react_to_loss;
};

// What a connect callback said; `calls` must end up as 1.
struct ConnectResult {
  int calls = 0;
  Status status;
  Peer peer;
  ControlPlane::ConnectCallback callback() {
    return [this](Result<Peer> result) {
      ++calls;
      if (result) {
        peer = *result;
      } else {
        status = result.status();
      }
    };
  }
};

inline flatbuffers::FlatBufferBuilder job_ready(uint64_t number) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(proto::CreateControlMessage(builder, proto::ControlBody::JobReady,
                                             proto::CreateJobReady(builder, number).Union()));
  return builder;
}

// Control planes on one loop, on addresses of 127/8, driven by the test itself.
class ControlPlaneTest : public ::testing::Test {
 protected:
  ControlPlaneTest() : loop_(std::move(Loop::create("test")).value()) {}

  static Peer peer_named(const std::string& name, const std::string& address) {
    return Peer{0, name, address, 0};
  }

  static ControlPlaneOptions options(const std::string& name,
                                     const std::string& address = "127.0.0.1") {
    ControlPlaneOptions result;
    result.self = peer_named(name, address);
    result.listen_address = address;
    result.cluster_key = {1, 2, 3, 4};
    return result;
  }

  std::unique_ptr<ControlPlane> create(ControlPlaneOptions with, RecordingHandler& handler) {
    auto plane = ControlPlane::create(*loop_, clock_, std::move(with), handler);
    if (!plane) ADD_FAILURE() << plane.status().to_string();
    return std::move(plane).value();
  }

  // Runs the loop until `condition` holds; false (and a failure) if it does not come to that.
  bool run_until(const std::function<bool()>& condition) {
    bool is_over = false;
    Timer limit(*loop_);
    limit.start_once(120'000, [&] { is_over = true; });
    Timer tick(*loop_);
    tick.start_repeating(2, [] {});
    while (!condition() && !is_over) uv_run(loop_->uv(), UV_RUN_ONCE);
    EXPECT_FALSE(is_over) << "it did not happen in time";
    return !is_over;
  }

  // A few rounds more, for what must not happen.
  void run_rounds(int rounds = 20) {
    Timer tick(*loop_);
    tick.start_repeating(1, [&rounds] { --rounds; });
    while (rounds > 0) uv_run(loop_->uv(), UV_RUN_ONCE);
  }

  // A port where nobody listens now.
  static uint16_t free_port(const std::string& address) {
    auto loop = std::move(Loop::create("port")).value();
    auto listener = TcpListener::create(*loop, *SocketAddress::parse(address, 0), 1, [](auto) {});
    return (*listener)->address().port();
  }

  static void send(ControlPlane& from, const ControlPlane& to, uint64_t number) {
    auto message = job_ready(number);
    ASSERT_TRUE(from.send(to.self().id, message).is_ok());
  }

  Peer connect(ControlPlane& from, const Peer& to) {
    ConnectResult result;
    from.connect(to.address, to.port, result.callback());
    EXPECT_EQ(result.calls, 0) << "never from within connect()";
    run_until([&] { return result.calls > 0; });
    EXPECT_TRUE(result.status.is_ok()) << result.status.to_string();
    return result.peer;
  }

  Status connect_error(ControlPlane& from, const std::string& host, uint16_t port) {
    ConnectResult result;
    from.connect(host, port, result.callback());
    EXPECT_EQ(result.calls, 0) << "never from within connect()";
    run_until([&] { return result.calls > 0; });
    run_rounds();
    EXPECT_EQ(result.calls, 1);
    EXPECT_FALSE(result.status.is_ok());
    return result.status;
  }

  SystemClock clock_;
  std::unique_ptr<Loop> loop_;
};

// a and b listen, and are not connected yet.
class TwoControlPlanesTest : public ControlPlaneTest {
 protected:
  RecordingHandler on_a_;
  RecordingHandler on_b_;
  std::unique_ptr<ControlPlane> a_ = create(options("a"), on_a_);
  std::unique_ptr<ControlPlane> b_ = create(options("b", "127.0.0.2"), on_b_);
};

// The owner of a connection that only waits for its end.
struct QuietOwner : ControlConnectionOwner {
  void on_established(ControlConnection&) override { is_established = true; }
  void on_message(ControlConnection&, const FrameNumbers&, const proto::ControlMessage&,
                  size_t) override {}
  void on_broken(ControlConnection&, const Status& reason) override { broken = reason.message(); }

  bool is_established = false;
  std::string broken;
};

inline flatbuffers::FlatBufferBuilder heartbeat(uint64_t sent_ms, uint64_t answered_ms) {
  flatbuffers::FlatBufferBuilder builder;
  const auto body = proto::CreateHeartbeat(builder, sent_ms, answered_ms);
  builder.Finish(proto::CreateControlMessage(builder, proto::ControlBody::Heartbeat, body.Union()));
  return builder;
}

inline ::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << text << "' does not contain '" << part << "'";
}

}  // namespace braid::testing
