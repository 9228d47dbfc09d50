// SPDX-License-Identifier: Apache-2.0
#include <random>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "net/ucx_endpoint.h"
#include "net/ucx_worker.h"
#include "transport_testing.h"

namespace braid::testing {
namespace {

// Someone who knows the address of a flow's worker, and speaks UCX.
class Stranger final : public UcxEndpointHandler {
 public:
  explicit Stranger(std::span<const uint8_t> address) {
    auto context = UcxContext::create({"lo", {"tcp"}, 64 << 10});
    worker_ = std::move(UcxWorker::create(context.value())).value();
    endpoint_ = std::move(UcxEndpoint::create(*worker_, address, *this)).value();
  }
  ~Stranger() override {
    endpoint_.reset();
    worker_.reset();
  }
  void send(unsigned id, std::span<const uint8_t> header, std::span<const uint8_t> payload) {
    endpoint_->send(id, header, payload, 0);
  }
  void progress() { worker_->progress(); }
  void on_endpoint_error(const Status&) override {}
  void on_send_done(uint64_t, const Status&) override {}

 private:
  std::unique_ptr<UcxWorker> worker_;
  std::unique_ptr<UcxEndpoint> endpoint_;
};

// Lets b wait for a on flow 0, and returns the address that b gave for it, which a does not get.
std::vector<uint8_t> waiting_address(TwoNodes& nodes) {
  nodes.b->control.is_silent = true;
  nodes.a->transport().open_link(nodes.b->id(), [](const Status&) {});
  std::vector<uint8_t> address;
  EXPECT_TRUE(nodes.run_until([&] {
    for (const auto& message : nodes.b->control.sent) {
      const auto* accept = proto::GetControlMessage(message.data())->body_as_FlowAccept();
      if (accept == nullptr || accept->flows()->Get(0)->flow() != 0) continue;
      const auto* bytes = accept->flows()->Get(0)->worker_address();
      address.assign(bytes->begin(), bytes->end());
    }
    return !address.empty();
  }));
  return address;
}

void start_anew(TwoNodes& nodes) {
  nodes.a->transport().on_peer_lost(nodes.b->id());
  nodes.b->transport().on_peer_lost(nodes.a->id());
  nodes.b->control.is_silent = false;
  ASSERT_TRUE(nodes.open());
}

proto::ChunkHeader forged_header(uint32_t bytes) {
  proto::ChunkHeader header{};
  header.magic = proto::kChunkMagic;
  header.version = proto::kChunkVersion;
  header.phase = static_cast<uint8_t>(proto::Phase::ReduceScatter);
  header.link_secret = 12345;
  header.bytes = bytes;
  header.sequence = 1;
  return header;
}

std::span<const uint8_t> bytes_of(const proto::ChunkHeader& header) {
  return {reinterpret_cast<const uint8_t*>(&header), sizeof(header)};
}

void expect_link_works(TwoNodes& nodes, uint64_t first) {
  const auto source = std::make_shared<RecordingSource>(8192);
  nodes.b->sink.arrived.clear();
  nodes.submit(source, first, 100);
  ASSERT_TRUE(nodes.run_until([&] { return source->settled.size() == 100; }));
  EXPECT_EQ(nodes.b->sink.arrived.size(), 100u);
}

TEST(Strangers, AChunkWithAWrongSecretIsDroppedAndCounted) {
  TwoNodes nodes;
  Stranger stranger(waiting_address(nodes));
  const std::vector<uint8_t> payload(100, 1);
  const auto header = forged_header(100);
  stranger.send(proto::kChunkMessage, bytes_of(header), payload);
  ASSERT_TRUE(nodes.run_until([&] {
    stranger.progress();
    return nodes.b->transport().counters().chunks_rejected == 1;
  }));
  EXPECT_TRUE(nodes.b->sink.arrived.empty());
  start_anew(nodes);
  expect_link_works(nodes, 0);
}

TEST(Strangers, HeadersThatAreNoneAreDroppedAndCounted) {
  TwoNodes nodes;
  Stranger stranger(waiting_address(nodes));
  std::mt19937 random(3);
  std::vector<std::vector<uint8_t>> headers;
  for (size_t bytes = 0; bytes < 100; ++bytes) {
    auto& header = headers.emplace_back(bytes);
    for (auto& byte : header) byte = static_cast<uint8_t>(random());
  }
  for (const auto& header : headers) stranger.send(proto::kChunkMessage, header, {});
  ASSERT_TRUE(nodes.run_until([&] {
    stranger.progress();
    return nodes.b->transport().counters().chunks_rejected == headers.size();
  }));
  EXPECT_TRUE(nodes.b->sink.arrived.empty());
  start_anew(nodes);
  expect_link_works(nodes, 0);
}

// Connects to whatever `listener` listens on; the socket does not block.
Fd connect_to(int listener) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  Fd stranger(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0));
  ::connect(stranger.get(), reinterpret_cast<sockaddr*>(&address), bytes);
  return stranger;
}

bool is_connected(const Fd& socket) {
  sockaddr_storage peer{};
  socklen_t bytes = sizeof(peer);
  return ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer), &bytes) == 0;
}

TEST(Strangers, GarbageOnTheTcpPortsOfUcxDoesNoHarmWhileFlowsAreOpened) {
  TwoNodes nodes;
  waiting_address(nodes);
  ASSERT_TRUE(nodes.run_until([&] { return listening_sockets().size() == 8; }));
  std::mt19937 random(5);
  for (const int port : listening_sockets()) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      const Fd stranger = connect_to(port);
      ASSERT_TRUE(is_connected(stranger));
      std::vector<uint8_t> garbage(attempt * 1000);
      for (auto& byte : garbage) byte = static_cast<uint8_t>(random());
      ::send(stranger.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
      for (int i = 0; i < 10; ++i) nodes.step();
    }
  }
  start_anew(nodes);
  expect_link_works(nodes, 0);
}

TEST(Strangers, NobodyCanConnectToThePortsOfOpenFlows) {
  TwoNodes nodes;
  ASSERT_TRUE(nodes.open());
  const auto ports = listening_sockets();
  ASSERT_EQ(ports.size(), 8u) << "four flows, both ends";
  for (const int port : ports) {
    const Fd stranger = connect_to(port);
    for (int i = 0; i < 10; ++i) nodes.step();
    EXPECT_FALSE(is_connected(stranger));
  }
  expect_link_works(nodes, 0);
}

}  // namespace
}  // namespace braid::testing
