// SPDX-License-Identifier: Apache-2.0
#include "control/handshake.h"

#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace braid {
namespace {

using Bytes = std::vector<uint8_t>;

const auto kKeyOfA = std::make_shared<const NodeKey>();
const auto kKeyOfB = std::make_shared<const NodeKey>();

HandshakeOptions options(const std::string& name, Bytes key = {1, 2, 3}) {
  HandshakeOptions result;
  result.node_key = name == "a" ? kKeyOfA : kKeyOfB;
  result.self = Peer{result.node_key->id(), name, name == "a" ? "10.0.0.1" : "10.0.0.2", 7410};
  result.cluster_key = std::move(key);
  return result;
}

Bytes key_of(const HandshakeOptions& of) {
  return {of.node_key->public_key().begin(), of.node_key->public_key().end()};
}

template <typename Body>
const Body* body_of(std::span<const uint8_t> frame) {
  return flatbuffers::GetRoot<proto::ControlMessage>(frame.data())->body_as<Body>();
}

template <typename Body>
Bytes finished(flatbuffers::FlatBufferBuilder& builder, flatbuffers::Offset<Body> body) {
  builder.Finish(proto::CreateControlMessage(builder, proto::ControlBodyTraits<Body>::enum_value,
                                             body.Union()));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

Bytes client_proof(const Bytes& proof, const Bytes& signature) {
  flatbuffers::FlatBufferBuilder builder;
  return finished(builder, proto::CreateClientProofDirect(builder, &proof, &signature));
}

struct Outcome {
  Status client;
  Status server;
  std::vector<Bytes> frames;
};

// Carries frames to and fro until nothing is left to say.
Outcome run(Handshake& client, Handshake& server) {
  Outcome outcome;
  Bytes frame = client.hello();
  bool to_server = true;
  while (!frame.empty()) {
    outcome.frames.push_back(frame);
    Status& status = to_server ? outcome.server : outcome.client;
    const Status& sender = to_server ? outcome.client : outcome.server;
    Handshake::Step step = (to_server ? server : client).receive(frame);
    status = step.error;
    frame = std::move(step.reply);
    to_server = !to_server;
    const bool reader_is_over = !(to_server ? outcome.server : outcome.client).is_ok();
    if (reader_is_over || (!status && !sender.is_ok())) break;
  }
  return outcome;
}

TEST(Handshake, MakesBothSidesKnowEachOther) {
  Handshake client(HandshakeRole::Client, options("a"));
  Handshake server(HandshakeRole::Server, options("b"));
  const Outcome outcome = run(client, server);
  ASSERT_TRUE(client.is_done()) << outcome.client.to_string();
  ASSERT_TRUE(server.is_done()) << outcome.server.to_string();
  EXPECT_EQ(outcome.frames.size(), 4u);
  EXPECT_EQ(client.peer().id, kKeyOfB->id());
  EXPECT_EQ(client.peer().name, "b");
  EXPECT_EQ(server.peer().id, kKeyOfA->id());
  EXPECT_EQ(server.peer().address, "10.0.0.1");
  EXPECT_EQ(server.peer().port, 7410);
  EXPECT_FALSE(server.peer_braid_version().empty());
}

TEST(Handshake, WorksWithoutAKeyOnBothSides) {
  Handshake client(HandshakeRole::Client, options("a", {}));
  Handshake server(HandshakeRole::Server, options("b", {}));
  run(client, server);
  EXPECT_TRUE(client.is_done());
  EXPECT_TRUE(server.is_done());
}

TEST(Handshake, TellsBothSidesThatTheKeysDiffer) {
  for (const auto& key : {Bytes{}, Bytes{1, 2}, Bytes{1, 2, 4}}) {
    Handshake client(HandshakeRole::Client, options("a", key));
    Handshake server(HandshakeRole::Server, options("b"));
    const Outcome outcome = run(client, server);
    EXPECT_FALSE(client.is_done());
    EXPECT_FALSE(server.is_done());
    EXPECT_EQ(outcome.client.code(), StatusCode::PermissionDenied);
    EXPECT_NE(outcome.client.message().find("cluster key does not match"), std::string::npos);
    EXPECT_NE(outcome.server.message().find("cluster key does not match"), std::string::npos);
  }
}

// A client that does not check the server's proof must not get in either.
TEST(Handshake, ServerChecksTheClientsProof) {
  Handshake stranger(HandshakeRole::Client, options("a", {9}));
  Handshake server(HandshakeRole::Server, options("b"));
  ASSERT_TRUE(server.receive(stranger.hello()).error.is_ok());
  const Bytes made_up(32, 7);
  const Handshake::Step step = server.receive(client_proof(made_up, made_up));
  EXPECT_EQ(step.error.code(), StatusCode::PermissionDenied);
  EXPECT_FALSE(step.reply.empty());
  EXPECT_FALSE(server.is_done());
}

// The bytes of proto/SPEC.md, put together a second time: peers of other making rely on them.
TEST(Handshake, ProvesWhatTheSpecificationSays) {
  HandshakeOptions b = options("b");
  b.generation = [](NodeId id) { return id == kKeyOfA->id() ? 7 : 0; };
  b.encrypts = true;
  HandshakeOptions a = options("a");
  a.encrypts = true;
  Handshake client(HandshakeRole::Client, a);
  Handshake server(HandshakeRole::Server, b);
  const auto client_frame = client.hello();
  const auto server_frame = server.receive(client_frame).reply;
  const auto* from_client = body_of<proto::ClientHello>(client_frame);
  const auto* from_server = body_of<proto::ServerHello>(server_frame);
  ASSERT_NE(from_client, nullptr);
  ASSERT_NE(from_server, nullptr);

  std::string message = "braid control server";
  const auto number = [&message](uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) message += static_cast<char>(value >> (8 * i));
  };
  const auto identity = [&](const proto::Identity& of) {
    number(of.node_id(), 8);
    number(of.port(), 2);
    for (const auto* text : {of.name(), of.address(), of.braid_version()}) {
      number(text->size(), 4);
      message += text->str();
    }
    message.append(of.public_key()->begin(), of.public_key()->end());
  };
  number(proto::kControlProtocolVersion, 4);
  number(1, 1);
  message.append(from_server->nonce()->begin(), from_server->nonce()->end());
  message.append(from_client->nonce()->begin(), from_client->nonce()->end());
  identity(*from_server->identity());
  identity(*from_client->identity());
  number(from_server->generation(), 8);
  EXPECT_EQ(from_server->generation(), 7u);
  const Bytes key{1, 2, 3};
  const Sha256Digest expected = hmac_sha256(key, Bytes(message.begin(), message.end()));
  ASSERT_EQ(from_server->proof()->size(), expected.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), from_server->proof()->begin()));
  const Bytes signed_bytes(message.begin(), message.end());
  EXPECT_TRUE(
      NodeKey::verify(kKeyOfB->public_key(), signed_bytes,
                      {from_server->signature()->data(), from_server->signature()->size()}));
}

TEST(Handshake, GivesBothSidesKeysForTheirFramesThatAreNewEachTime) {
  std::set<Sha256Digest> seen;
  for (int round = 0; round < 2; ++round) {
    HandshakeOptions a = options("a");
    a.generation = [](NodeId) { return 5; };
    Handshake client(HandshakeRole::Client, a);
    Handshake server(HandshakeRole::Server, options("b"));
    run(client, server);
    ASSERT_TRUE(client.is_done() && server.is_done());
    EXPECT_EQ(client.frame_keys().sending, server.frame_keys().receiving);
    EXPECT_EQ(client.frame_keys().receiving, server.frame_keys().sending);
    seen.insert(client.frame_keys().sending);
    seen.insert(client.frame_keys().receiving);
    EXPECT_EQ(client.generations().own, 5u);
    EXPECT_EQ(client.generations().peer, 0u);
    EXPECT_EQ(server.generations().own, 0u);
    EXPECT_EQ(server.generations().peer, 5u);
  }
  EXPECT_EQ(seen.size(), 4u);
}

// It has the cluster key, and has seen the other's public key, but cannot sign with it.
TEST(Handshake, AHolderOfTheClusterKeyCannotTakeAnothersId) {
  const auto outcome_as = [](HandshakeOptions impostor, bool is_client) {
    Handshake client(HandshakeRole::Client, is_client ? impostor : options("a"));
    Handshake server(HandshakeRole::Server, is_client ? options("a") : impostor);
    const Outcome outcome = run(client, server);
    EXPECT_FALSE(is_client ? server.is_done() : client.is_done());
    return is_client ? outcome.server : outcome.client;
  };
  for (const bool is_client : {true, false}) {
    HandshakeOptions other_id = options("b");
    other_id.node_key = std::make_shared<const NodeKey>();
    const Status status = outcome_as(other_id, is_client);
    EXPECT_EQ(status.code(), StatusCode::PermissionDenied);
    EXPECT_NE(status.message().find("which is not that of its key"), std::string::npos);
  }
  // The same with the other's public key, as a client; the frames are made by hand.
  Handshake server(HandshakeRole::Server, options("a"));
  Handshake impostor(HandshakeRole::Client, options("b"));
  const auto hello = server.receive(impostor.hello());
  ASSERT_TRUE(hello.error.is_ok());
  const auto proof_bytes = impostor.receive(hello.reply).reply;
  const auto* proof = body_of<proto::ClientProof>(proof_bytes);
  const Bytes right_proof(proof->proof()->begin(), proof->proof()->end());
  const NodeKey own;
  const NodeSignature wrong = own.sign(right_proof);
  const Bytes signature(wrong.begin(), wrong.end());
  const auto step = server.receive(client_proof(right_proof, signature));
  EXPECT_EQ(step.error.code(), StatusCode::PermissionDenied);
  EXPECT_NE(step.error.message().find("but not the key of node"), std::string::npos);
}

TEST(Handshake, RefusesAKeyThatMakesTheSecretAKnownOne) {
  const KeyExchange exchange;
  EXPECT_FALSE(exchange.agree(PublicKey{}).has_value());
  EXPECT_TRUE(exchange.agree(KeyExchange().public_key()).has_value());
}

Bytes client_proof_from(std::span<const uint8_t> server_hello) {
  const auto* hello = body_of<proto::ServerHello>(server_hello);
  const Bytes proof(hello->proof()->begin(), hello->proof()->end());
  return client_proof(proof, proof);
}

TEST(Handshake, ReflectedServerProofProvesNothing) {
  Handshake client(HandshakeRole::Client, options("a"));
  Handshake server(HandshakeRole::Server, options("b"));
  const Handshake::Step hello = server.receive(client.hello());
  ASSERT_TRUE(hello.error.is_ok());
  const Handshake::Step step = server.receive(client_proof_from(hello.reply));
  EXPECT_EQ(step.error.code(), StatusCode::PermissionDenied);
  EXPECT_FALSE(server.is_done());
}

// The stranger has the server itself answer its challenge: it opens a second connection as a client
// that shows the nonce and the identity of the first one's server.
TEST(Handshake, ProofOfAParallelConnectionProvesNothing) {
  const auto client_hello = [](const Bytes& nonce, const HandshakeOptions& as) {
    flatbuffers::FlatBufferBuilder builder;
    const auto key = key_of(as);
    const auto identity =
        proto::CreateIdentityDirect(builder, as.self.id, as.self.name.c_str(),
                                    as.self.address.c_str(), as.self.port, "0", &key);
    const auto bytes = builder.CreateVector(nonce);
    return finished(builder,
                    proto::CreateClientHello(builder, as.protocol_version, bytes, identity));
  };
  Handshake first(HandshakeRole::Server, options("b"));
  Handshake second(HandshakeRole::Server, options("b"));
  const auto step = first.receive(client_hello(Bytes(32, 5), options("a")));
  ASSERT_TRUE(step.error.is_ok());
  const auto* hello = body_of<proto::ServerHello>(step.reply);
  const Bytes nonce(hello->nonce()->begin(), hello->nonce()->end());
  const auto answer = second.receive(client_hello(nonce, options("b")));
  ASSERT_TRUE(answer.error.is_ok());
  EXPECT_FALSE(first.receive(client_proof_from(answer.reply)).error.is_ok());
  EXPECT_FALSE(first.is_done());
}

TEST(Handshake, RefusesItsOwnNonce) {
  Handshake client(HandshakeRole::Client, options("a"));
  const auto hello_bytes = client.hello();
  const auto* hello = body_of<proto::ClientHello>(hello_bytes);
  const Bytes nonce(hello->nonce()->begin(), hello->nonce()->end());
  const Bytes proof(32, 1);
  flatbuffers::FlatBufferBuilder builder;
  const auto key = key_of(options("b"));
  const auto identity =
      proto::CreateIdentityDirect(builder, kKeyOfB->id(), "b", "10.0.0.2", 7410, "0", &key);
  const auto step = client.receive(
      finished(builder, proto::CreateServerHelloDirect(builder, proto::kControlProtocolVersion,
                                                       &nonce, identity, &proof)));
  EXPECT_EQ(step.error.code(), StatusCode::Protocol);
  EXPECT_TRUE(step.reply.empty());
}

TEST(Handshake, SaysWhoseVersionIsTheOldOne) {
  for (const uint32_t servers : {2u, 4u}) {
    HandshakeOptions a = options("a");
    a.protocol_version = 3;
    HandshakeOptions b = options("b");
    b.protocol_version = servers;
    Handshake client(HandshakeRole::Client, a);
    Handshake server(HandshakeRole::Server, b);
    const Outcome outcome = run(client, server);
    const std::string old = servers < 3 ? "upgrade node 'b'" : "upgrade node 'a'";
    for (const Status& status : {outcome.client, outcome.server}) {
      EXPECT_NE(status.message().find(old), std::string::npos) << status.to_string();
      EXPECT_NE(status.message().find("node 'a' (10.0.0.1) speaks control protocol 3"),
                std::string::npos);
    }
  }
}

HandshakeOptions encrypting(HandshakeOptions as) {
  as.encrypts = true;
  return as;
}

TEST(Handshake, SaysWhoEncrypts) {
  for (const bool is_client : {true, false}) {
    const HandshakeOptions a = options("a");
    const HandshakeOptions b = options("b");
    Handshake client(HandshakeRole::Client, is_client ? encrypting(a) : a);
    Handshake server(HandshakeRole::Server, is_client ? b : encrypting(b));
    const Outcome outcome = run(client, server);
    EXPECT_FALSE(client.is_done());
    EXPECT_FALSE(server.is_done());
    const std::string a_says = is_client ? "on" : "off";
    const std::string b_says = is_client ? "off" : "on";
    for (const Status& status : {outcome.client, outcome.server}) {
      EXPECT_NE(status.message().find("transport.encryption is " + a_says +
                                      " on node 'a' (10.0.0.1) and " + b_says +
                                      " on node 'b' (10.0.0.2): set the same on all nodes"),
                std::string::npos)
          << status.to_string();
    }
  }
}

TEST(Handshake, TellsHowFramesAreProtected) {
  for (const bool is_on : {false, true}) {
    Handshake client(HandshakeRole::Client, is_on ? encrypting(options("a")) : options("a"));
    Handshake server(HandshakeRole::Server, is_on ? encrypting(options("b")) : options("b"));
    run(client, server);
    ASSERT_TRUE(client.is_done() && server.is_done());
    const auto wanted = is_on ? FrameProtection::Encrypted : FrameProtection::Authenticated;
    EXPECT_EQ(client.frame_protection(), wanted);
    EXPECT_EQ(server.frame_protection(), wanted);
  }
}

flatbuffers::Offset<proto::Identity> copied(flatbuffers::FlatBufferBuilder& builder,
                                            const proto::Identity& of) {
  const Bytes key(of.public_key()->begin(), of.public_key()->end());
  return proto::CreateIdentityDirect(builder, of.node_id(), of.name()->c_str(),
                                     of.address()->c_str(), of.port(), of.braid_version()->c_str(),
                                     &key);
}

// The same hello, but for what it says of encryption.
Bytes client_hello_that(std::span<const uint8_t> frame, bool encrypts) {
  const auto* hello = body_of<proto::ClientHello>(frame);
  flatbuffers::FlatBufferBuilder builder;
  const auto identity = copied(builder, *hello->identity());
  const auto nonce = builder.CreateVector(hello->nonce()->data(), hello->nonce()->size());
  return finished(builder, proto::CreateClientHello(builder, hello->protocol_version(), nonce,
                                                    identity, encrypts));
}

Bytes server_hello_that(std::span<const uint8_t> frame, bool encrypts) {
  const auto* hello = body_of<proto::ServerHello>(frame);
  flatbuffers::FlatBufferBuilder builder;
  const auto identity = copied(builder, *hello->identity());
  const auto copy = [&](const auto& of) { return builder.CreateVector(of.data(), of.size()); };
  const auto nonce = copy(*hello->nonce());
  const auto proof = copy(*hello->proof());
  const auto signature = copy(*hello->signature());
  return finished(
      builder, proto::CreateServerHello(builder, hello->protocol_version(), nonce, identity, proof,
                                        signature, hello->generation(), encrypts));
}

// Somebody between a node that encrypts and one that does not tells each what it wants to hear.
TEST(Handshake, NobodyInBetweenCanTalkASideOutOfEncryption) {
  for (const bool is_client : {true, false}) {
    const HandshakeOptions a = options("a");
    const HandshakeOptions b = options("b");
    Handshake client(HandshakeRole::Client, is_client ? encrypting(a) : a);
    Handshake server(HandshakeRole::Server, is_client ? b : encrypting(b));
    const auto answer = server.receive(client_hello_that(client.hello(), !is_client));
    ASSERT_TRUE(answer.error.is_ok()) << answer.error.to_string();
    const auto step = client.receive(server_hello_that(answer.reply, is_client));
    EXPECT_EQ(step.error.code(), StatusCode::PermissionDenied) << step.error.to_string();
    EXPECT_FALSE(client.is_done());
  }
}

TEST(Handshake, RefusesAMalformedIdentity) {
  const auto refused = [](Peer self) {
    HandshakeOptions a = options("a");
    a.self = std::move(self);
    Handshake client(HandshakeRole::Client, a);
    Handshake server(HandshakeRole::Server, options("b"));
    return server.receive(client.hello()).error.code() == StatusCode::Protocol;
  };
  EXPECT_FALSE(refused({kKeyOfA->id(), "a", "10.0.0.1", 1}));
  EXPECT_TRUE(refused({0, "a", "10.0.0.1", 1}));
  EXPECT_TRUE(refused({kKeyOfA->id(), "", "10.0.0.1", 1}));
  EXPECT_TRUE(refused({kKeyOfA->id(), "a\nforged log line", "10.0.0.1", 1}));
  EXPECT_TRUE(refused({kKeyOfA->id(), std::string(256, 'a'), "10.0.0.1", 1}));
  EXPECT_TRUE(refused({kKeyOfA->id(), "a", "", 1}));
  EXPECT_TRUE(refused({kKeyOfA->id(), "a", "10.0.0.1", 0}));
}

// Every prefix of every frame, and every frame with one byte changed: no crash, and nobody gets in
// who should not.
TEST(Handshake, SurvivesDamagedFrames) {
  std::mt19937 random(7);
  size_t refused = 0;
  size_t rounds = 0;
  for (size_t damaged = 0; damaged < 4; ++damaged) {
    for (int round = 0; round < 200; ++round) {
      Handshake client(HandshakeRole::Client, options("a"));
      Handshake server(HandshakeRole::Server, options("b"));
      Bytes frame = client.hello();
      bool to_server = true;
      ++rounds;
      for (size_t step_number = 0; !frame.empty(); ++step_number) {
        if (step_number == damaged && round % 2 == 0) frame.resize(random() % frame.size());
        if (step_number == damaged && round % 2 == 1) {
          frame[random() % frame.size()] ^= static_cast<uint8_t>(1 + random() % 255);
        }
        Handshake::Step step = (to_server ? server : client).receive(frame);
        if (!step.error) {
          ++refused;
          break;
        }
        frame = std::move(step.reply);
        to_server = !to_server;
      }
      // Truncation never goes unnoticed.
      if (round % 2 == 0) {
        EXPECT_FALSE(client.is_done());
      }
      // A peer that is let in is the one that it says, however its bytes were changed on the way.
      if (server.is_done()) {
        EXPECT_EQ(server.peer().id, kKeyOfA->id());
        EXPECT_EQ(server.peer().name, "a");
      }
    }
  }
  EXPECT_GT(refused, rounds / 2);
}

TEST(Handshake, SurvivesRandomBytes) {
  std::mt19937 random(99);
  for (int round = 0; round < 1000; ++round) {
    Bytes noise(random() % 200);
    for (auto& byte : noise) byte = static_cast<uint8_t>(random() % (round % 3 == 0 ? 16 : 256));
    Handshake server(HandshakeRole::Server, options("b"));
    EXPECT_FALSE(server.receive(noise).error.is_ok());
    Handshake client(HandshakeRole::Client, options("a"));
    client.hello();
    EXPECT_FALSE(client.receive(noise).error.is_ok());
  }
}

}  // namespace
}  // namespace braid
