// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include <sys/socket.h>

#include "base/fd.h"
#include "net/flow_proof.h"
#include "net/tcp/flow_address.h"
#include "net/tcp/flow_listener.h"
#include "net/tcp/sealed_record.h"
#include "net/transport_testing.h"

namespace braid::testing {
namespace {

TransportOptions native_options() {
  auto options = TwoNodes::default_options();
  options.tcp = TcpTransport::Native;
  options.open_timeout_ms = 120'000;
  return options;
}

// The latest message of that kind that `node` has sent.
template <typename Body>
const Body* latest(const FakeNode& node) {
  const Body* found = nullptr;
  for (const auto& bytes : node.control.sent) {
    const auto* body = proto::GetControlMessage(bytes.data())->body_as<Body>();
    if (body != nullptr) found = body;
  }
  return found;
}

// A flow for which b waits, and of which a is never told.
class TcpStrangers : public ::testing::Test {
 protected:
  explicit TcpStrangers(const TransportOptions& options = native_options()) : nodes_(options) {
    nodes_.b->control.is_silent = true;
    nodes_.a->transport().open_link(nodes_.b->id(), [](const Status&) {});
    EXPECT_TRUE(nodes_.run_until([&] { return latest<proto::FlowAccept>(*nodes_.b) != nullptr; }));
    const auto& end = *latest<proto::FlowAccept>(*nodes_.b)->flows()->Get(0);
    const std::vector<uint8_t> bytes(end.worker_address()->begin(), end.worker_address()->end());
    listening_ = read_flow_address(bytes, "lo");
    const auto* open = latest<proto::FlowOpen>(*nodes_.a);
    const LinkKey link =
        nodes_.a->control.link_key(nodes_.a->id(), nodes_.b->id(), open->link_nonce());
    keys_ = FlowKeys(link, end.io_loop(), end.flow(), end.generation());
  }

  FlowGreeting greeting() const {
    FlowGreeting greeting;
    greeting.token = keys_->chunk_token;
    greeting.proof = flow_proof(keys_->proof_key, FlowProofOf::Connecting, listening_->port());
    return greeting;
  }
  Fd connect() const {
    Fd socket(::socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(::connect(socket.get(), listening_->get(), sizeof(sockaddr_in)), 0);
    return socket;
  }
  static void say(const Fd& socket, const void* bytes, size_t count) {
    EXPECT_EQ(::send(socket.get(), bytes, count, MSG_NOSIGNAL), static_cast<ssize_t>(count));
  }
  uint64_t strangers() const { return nodes_.b->transport().counters().strangers; }
  void expect_refused(const FlowGreeting& greeting, uint64_t count) {
    expect_refused(&greeting, sizeof(greeting), count);
  }
  void expect_refused(const void* greeting, size_t bytes, uint64_t count) {
    const Fd socket = connect();
    say(socket, greeting, bytes);
    EXPECT_TRUE(nodes_.run_until([&] { return strangers() == count; }));
    char byte = 0;
    EXPECT_LE(::recv(socket.get(), &byte, 1, 0), 0) << "nothing is said to a stranger";
  }
  // The proof of the other side has come, and the connection is open.
  void expect_answered(const Fd& socket) {
    FlowProof answer{};
    ASSERT_TRUE(nodes_.run_until([&] {
      return ::recv(socket.get(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_PEEK) ==
             static_cast<ssize_t>(answer.size());
    }));
    ::recv(socket.get(), answer.data(), answer.size(), 0);
    EXPECT_EQ(answer, flow_proof(keys_->proof_key, FlowProofOf::Listening, listening_->port()));
  }

  TwoNodes nodes_;
  std::optional<SocketAddress> listening_;
  std::optional<FlowKeys> keys_;
};

TEST_F(TcpStrangers, OnlyTheFlowsKeyLetsAConnectionIn) {
  FlowGreeting wrong = greeting();
  wrong.proof.back() ^= 1;
  expect_refused(wrong, 1);
  wrong = greeting();
  wrong.token ^= 1;
  expect_refused(wrong, 2);
  wrong = greeting();
  ++wrong.version;
  expect_refused(wrong, 3);
  wrong = greeting();
  wrong.proof = flow_proof(keys_->proof_key, FlowProofOf::Listening, listening_->port());
  expect_refused(wrong, 4);
  const Fd right = connect();
  const FlowGreeting own = greeting();
  say(right, &own, sizeof(own));
  expect_answered(right);
}

TEST_F(TcpStrangers, AGreetingThatWasHeardLetsNoSecondConnectionIn) {
  const FlowGreeting own = greeting();
  const Fd first = connect();
  say(first, &own, sizeof(own));
  expect_answered(first);
  expect_refused(own, 1);
}

TEST_F(TcpStrangers, PartOfAGreetingIsNone) {
  const FlowGreeting own = greeting();
  const Fd half = connect();
  say(half, &own, sizeof(own) / 2);
  EXPECT_TRUE(nodes_.run_until([&] { return strangers() == 1; }));
}

TEST_F(TcpStrangers, ManySilentConnectionsHoldUpNobody) {
  std::vector<Fd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connect());
  const FlowGreeting own = greeting();
  const Fd right = connect();
  say(right, &own, sizeof(own));
  expect_answered(right);
  EXPECT_EQ(strangers(), 0u) << "the kernel keeps what says nothing";
}

// A daemon, which holds the flow's key, may be broken.
TEST_F(TcpStrangers, WhatIsNoChunkEndsTheConnectionAndIsCounted) {
  const FlowGreeting own = greeting();
  const Fd right = connect();
  say(right, &own, sizeof(own));
  expect_answered(right);
  proto::ChunkHeader header{};
  header.magic = proto::kChunkMagic;
  header.version = proto::kChunkVersion;
  header.phase = static_cast<uint8_t>(proto::Phase::ReduceScatter);
  header.flow_token = keys_->chunk_token ^ 1;
  header.sequence = 1;
  say(right, &header, sizeof(header));
  EXPECT_TRUE(
      nodes_.run_until([&] { return nodes_.b->transport().counters().chunks_rejected == 1; }));
  EXPECT_TRUE(nodes_.run_until([&] {
    char byte = 0;
    return ::recv(right.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }));
  EXPECT_TRUE(nodes_.b->sink.arrived.empty());
}

TEST_F(TcpStrangers, AChunkLargerThanAnyThatMayComeEndsTheConnection) {
  const FlowGreeting own = greeting();
  const Fd right = connect();
  say(right, &own, sizeof(own));
  expect_answered(right);
  proto::ChunkHeader header{};
  header.magic = proto::kChunkMagic;
  header.version = proto::kChunkVersion;
  header.phase = static_cast<uint8_t>(proto::Phase::ReduceScatter);
  header.flow_token = keys_->chunk_token;
  header.bytes = TwoNodes::default_options().chunk_bytes + 1;
  header.sequence = 1;
  say(right, &header, sizeof(header));
  EXPECT_TRUE(
      nodes_.run_until([&] { return nodes_.b->transport().counters().chunks_rejected == 1; }));
}

TransportOptions encrypted_options() {
  auto options = native_options();
  options.encrypts = true;
  return options;
}

class EncryptedStrangers : public TcpStrangers {
 protected:
  struct Greeting {
    FlowGreeting first;
    std::array<uint8_t, FlowSalts::kBytes> salt{};
  };
  static_assert(sizeof(Greeting) == 64);

  EncryptedStrangers() : TcpStrangers(encrypted_options()) {
    const auto salt = salts_.own(FlowProofOf::Connecting);
    salt[0] = 1;
    own_.first.version = FlowGreeting::kEncrypted;
    own_.first.token = keys_->chunk_token;
    own_.first.proof =
        flow_proof(keys_->proof_key, FlowProofOf::Connecting, listening_->port(), salt);
    std::ranges::copy(salt, own_.salt.begin());
  }
  // The answer has come; from now on both salts are known.
  void expect_encrypted_answer(const Fd& socket) {
    std::array<uint8_t, kFlowProofBytes + FlowSalts::kBytes> answer{};
    ASSERT_TRUE(nodes_.run_until([&] {
      return ::recv(socket.get(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_PEEK) ==
             static_cast<ssize_t>(answer.size());
    }));
    ::recv(socket.get(), answer.data(), answer.size(), 0);
    const auto salt = std::span(answer).last<FlowSalts::kBytes>();
    std::ranges::copy(salt, salts_.own(FlowProofOf::Listening).begin());
    const auto proof = flow_proof(keys_->proof_key, FlowProofOf::Listening, listening_->port(),
                                  salts_.known_to(FlowProofOf::Listening));
    EXPECT_TRUE(std::ranges::equal(std::span(answer).first(proof.size()), proof));
    EXPECT_FALSE(std::ranges::equal(salt, std::array<uint8_t, FlowSalts::kBytes>{}));
  }
  bool is_closed(const Fd& socket) {
    return nodes_.run_until([&] {
      char byte = 0;
      return ::recv(socket.get(), &byte, 1, MSG_DONTWAIT) == 0;
    });
  }
  uint64_t rejected() const { return nodes_.b->transport().counters().chunks_rejected; }

  FlowSalts salts_;
  Greeting own_;
};

TEST_F(EncryptedStrangers, OnlyTheFlowsKeyAndTheSaltThatItProvesLetAConnectionIn) {
  expect_refused(greeting(), 1);
  Greeting wrong = own_;
  wrong.salt.back() ^= 1;
  expect_refused(&wrong, sizeof(wrong), 2);
  wrong = own_;
  wrong.first.proof = greeting().proof;  // that of a connection in clear
  expect_refused(&wrong, sizeof(wrong), 3);
  wrong = own_;
  wrong.first.version = FlowGreeting::kVersion;
  expect_refused(&wrong, sizeof(wrong), 4);
  expect_refused(&own_, sizeof(own_) - 1, 5);
  const Fd right = connect();
  say(right, &own_, sizeof(own_));
  expect_encrypted_answer(right);
  expect_refused(&own_, sizeof(own_), 6);
}

TEST_F(TcpStrangers, AnEncryptedConnectionIsRefusedWhereFlowsAreInClear) {
  FlowGreeting wrong = greeting();
  wrong.version = FlowGreeting::kEncrypted;
  expect_refused(wrong, 1);
}

// Both the proof and the token are right: a connection was taken over after its greeting.
TEST_F(EncryptedStrangers, ChunksInClearEndTheConnection) {
  const Fd right = connect();
  say(right, &own_, sizeof(own_));
  expect_encrypted_answer(right);
  proto::ChunkHeader header{};
  header.magic = proto::kChunkMagic;
  header.version = proto::kChunkVersion;
  header.phase = static_cast<uint8_t>(proto::Phase::ReduceScatter);
  header.flow_token = keys_->chunk_token;
  header.sequence = 1;
  say(right, &header, sizeof(header));
  EXPECT_TRUE(is_closed(right));
  EXPECT_TRUE(nodes_.b->sink.arrived.empty());
  EXPECT_EQ(rejected(), 0u) << "it was no message at all";
}

// What comes after the proof is read with the key for this connection, and this direction, alone.
TEST_F(EncryptedStrangers, RecordsAreReadWithTheKeyOfTheConnectingSide) {
  const Fd right = connect();
  say(right, &own_, sizeof(own_));
  expect_encrypted_answer(right);
  RecordCipher cipher(flow_record_key(keys_->cipher_key, FlowProofOf::Connecting, salts_));
  proto::ChunkHeader header{};  // it is no chunk of this flow, which only who can read it sees
  header.magic = proto::kChunkMagic;
  std::array<uint8_t, sizeof(header) + SealedRecord::kExtraBytes> record{};
  const uint32_t length = sizeof(header);
  std::memcpy(record.data(), &length, sizeof(length));
  const std::array<std::span<const uint8_t>, 1> parts{
      std::span(reinterpret_cast<const uint8_t*>(&header), sizeof(header))};
  ASSERT_TRUE(cipher.seal(std::span(record).first<4>(), parts,
                          std::span(record).subspan(4, sizeof(header)),
                          std::span(record).last<RecordCipher::kTagBytes>()));
  say(right, record.data(), record.size());
  EXPECT_TRUE(nodes_.run_until([&] { return rejected() == 1; }));
  EXPECT_TRUE(is_closed(right));
}

// The control plane connects no such nodes; if it did, no flow would open.
TEST(TcpTransport, NodesOfWhichOneEncryptsOpenNoFlow) {
  for (const bool is_first : {true, false}) {
    TwoNodes nodes(is_first ? encrypted_options() : native_options(),
                   is_first ? native_options() : encrypted_options());
    nodes.a->transport().open_link(nodes.b->id(), [](const Status&) {});
    EXPECT_TRUE(nodes.run_until([&] { return nodes.b->transport().counters().strangers > 0; }));
    EXPECT_EQ(nodes.a->transport().counters().flows_open, 0u);
  }
}

TEST(TcpTransport, ChunksAndTheirAcknowledgementsComeEncrypted) {
  OpenNodes nodes(encrypted_options());
  const auto source = nodes.submit(60'000, 200);
  nodes.expect_delivered_once(*source, 200);
}

TEST(TcpTransport, NodesWithDifferentTransportsSaySo) {
  auto ucx = TwoNodes::default_options();
  ucx.tcp = TcpTransport::Ucx;
  auto native = ucx;
  native.tcp = TcpTransport::Native;
  TwoNodes nodes(native, ucx);
  const Status opened = nodes.open();
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.message().find("transport.tcp"), std::string::npos) << opened.message();
  EXPECT_NE(opened.message().find("'native'"), std::string::npos) << opened.message();
}

TEST(FlowAddress, IsReadBackAsTheSame) {
  for (const char* host : {"192.0.2.7", "2001:db8::7"}) {
    const auto address = SocketAddress::parse(host, 4711);
    const auto read = read_flow_address(flow_address(*address), "lo");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->to_string(), address->to_string());
  }
  auto bytes = flow_address(*SocketAddress::parse("192.0.2.7", 4711));
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(read_flow_address(std::span(bytes).first(length), "lo")) << length;
  bytes[0] = 5;
  EXPECT_FALSE(read_flow_address(bytes, "lo"));
}

}  // namespace
}  // namespace braid::testing
