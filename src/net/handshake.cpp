// SPDX-License-Identifier: Apache-2.0
#include "net/handshake.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/random.h"
#include "net/peer_text.h"

namespace braid {
namespace {

using flatbuffers::FlatBufferBuilder;

constexpr size_t kTextBytesMax = 255;
constexpr std::string_view kClientLabel = "braid control client";
constexpr std::string_view kServerLabel = "braid control server";
constexpr const char* kWrongKey =
    "cluster key does not match: all nodes need the same content in control.cluster_key_file";

template <typename Table>
std::vector<uint8_t> finish(FlatBufferBuilder& builder, flatbuffers::Offset<Table> body) {
  builder.Finish(proto::CreateControlMessage(builder, proto::ControlBodyTraits<Table>::enum_value,
                                             body.Union()));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

flatbuffers::Offset<proto::Identity> make_identity(FlatBufferBuilder& builder, const Peer& self) {
  return proto::CreateIdentityDirect(builder, self.id, self.name.c_str(), self.address.c_str(),
                                     self.port, BRAID_VERSION);
}

template <typename Bytes>
flatbuffers::Offset<flatbuffers::Vector<uint8_t>> make_bytes(FlatBufferBuilder& builder,
                                                             const Bytes& bytes) {
  return builder.CreateVector(bytes.data(), bytes.size());
}

bool is_proper_text(const flatbuffers::String& text) {
  return text.size() > 0 && text.size() <= kTextBytesMax &&
         std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<uint8_t>(c) < ' ' || c == '\x7f'; });
}

void append_bytes(std::vector<uint8_t>& out, std::string_view bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <typename Number>
void append_number(std::vector<uint8_t>& out, Number number) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&number);
  out.insert(out.end(), bytes, bytes + sizeof(number));
}

void append_text(std::vector<uint8_t>& out, std::string_view text) {
  append_number(out, static_cast<uint32_t>(text.size()));
  append_bytes(out, text);
}

void append_identity(std::vector<uint8_t>& out, const Peer& peer, std::string_view version) {
  append_number(out, peer.id);
  append_number(out, peer.port);
  append_text(out, peer.name);
  append_text(out, peer.address);
  append_text(out, version);
}

}  // namespace

Handshake::Handshake(HandshakeRole role, HandshakeOptions options)
    : role_(role),
      options_(std::move(options)),
      state_(role == HandshakeRole::Client ? State::Start : State::AwaitClientHello) {
  fill_random(nonce_);
}

std::vector<uint8_t> Handshake::hello() {
  BRAID_ASSERT(state_ == State::Start, "the client says hello, once");
  state_ = State::AwaitServerHello;
  FlatBufferBuilder builder;
  const auto nonce = make_bytes(builder, nonce_);
  const auto identity = make_identity(builder, options_.self);
  return finish(builder,
                proto::CreateClientHello(builder, options_.protocol_version, nonce, identity));
}

Handshake::Step Handshake::receive(std::span<const uint8_t> frame) {
  BRAID_ASSERT(state_ != State::Done && state_ != State::Failed, "the handshake is over");
  flatbuffers::Verifier verifier(frame.data(), frame.size());
  if (!verifier.VerifyBuffer<proto::ControlMessage>(nullptr)) {
    return fail({StatusCode::Protocol, "these bytes are no control message of braid"});
  }
  const auto& message = *flatbuffers::GetRoot<proto::ControlMessage>(frame.data());
  if (const auto* refused = message.body_as_HandshakeRefused()) return on_refused(*refused);
  switch (state_) {
    case State::AwaitClientHello:
      if (const auto* hello = message.body_as_ClientHello()) return on_client_hello(*hello);
      return on_unexpected();
    case State::AwaitServerHello:
      if (const auto* hello = message.body_as_ServerHello()) return on_server_hello(*hello);
      return on_unexpected();
    case State::AwaitClientProof:
      if (const auto* proof = message.body_as_ClientProof()) return on_client_proof(*proof);
      return on_unexpected();
    case State::AwaitAccepted:
      if (message.body_as_HandshakeAccepted() == nullptr) return on_unexpected();
      state_ = State::Done;
      return {};
    case State::Start:
    case State::Done:
    case State::Failed:
      break;
  }
  return on_unexpected();
}

Handshake::Step Handshake::on_client_hello(const proto::ClientHello& hello) {
  if (Status status = take_version(hello.protocol_version(), *hello.identity()); !status) {
    return refuse(std::move(status));
  }
  if (Status status = take_peer(*hello.nonce(), *hello.identity()); !status) {
    return fail(std::move(status));
  }
  if (!options_.refusal.empty()) return refuse({StatusCode::PermissionDenied, options_.refusal});

  FlatBufferBuilder builder;
  const auto nonce = make_bytes(builder, nonce_);
  const auto identity = make_identity(builder, options_.self);
  const auto proof = make_bytes(builder, proof_of(role_));
  state_ = State::AwaitClientProof;
  return {finish(builder, proto::CreateServerHello(builder, options_.protocol_version, nonce,
                                                   identity, proof)),
          {}};
}

Handshake::Step Handshake::on_server_hello(const proto::ServerHello& hello) {
  if (Status status = take_version(hello.protocol_version(), *hello.identity()); !status) {
    return refuse(std::move(status));
  }
  if (Status status = take_peer(*hello.nonce(), *hello.identity()); !status) {
    return fail(std::move(status));
  }
  if (!is_proof_of_peer(*hello.proof())) return refuse({StatusCode::PermissionDenied, kWrongKey});

  FlatBufferBuilder builder;
  const auto proof = make_bytes(builder, proof_of(role_));
  state_ = State::AwaitAccepted;
  const bool knows_server = options_.knows && options_.knows(peer_.id);
  return {finish(builder, proto::CreateClientProof(builder, proof, knows_server)), {}};
}

Handshake::Step Handshake::on_client_proof(const proto::ClientProof& proof) {
  if (!is_proof_of_peer(*proof.proof())) return refuse({StatusCode::PermissionDenied, kWrongKey});
  is_first_of_client_ = !proof.knows_server();
  FlatBufferBuilder builder;
  state_ = State::Done;
  return {finish(builder, proto::CreateHandshakeAccepted(builder)), {}};
}

Handshake::Step Handshake::on_refused(const proto::HandshakeRefused& refused) {
  return fail({StatusCode::PermissionDenied,
               fmt::format("refused by the other side: {}",
                           printable({refused.reason()->data(), refused.reason()->size()}, 1024))});
}

Handshake::Step Handshake::on_unexpected() {
  return fail({StatusCode::Protocol, "a message that does not belong here in the handshake"});
}

Handshake::Step Handshake::fail(Status error) {
  state_ = State::Failed;
  return {{}, std::move(error)};
}

Handshake::Step Handshake::refuse(Status error) {
  state_ = State::Failed;
  FlatBufferBuilder builder;
  return {finish(builder, proto::CreateHandshakeRefusedDirect(builder, error.message().c_str())),
          std::move(error)};
}

Status Handshake::take_version(uint32_t version, const proto::Identity& identity) const {
  if (version == options_.protocol_version) return Status::ok();
  const auto name = printable({identity.name()->data(), identity.name()->size()});
  const auto address = printable({identity.address()->data(), identity.address()->size()});
  return make_status(
      StatusCode::Protocol,
      "node '{}' ({}) speaks control protocol {}, node '{}' ({}) speaks {}: upgrade node '{}'",
      name, address, version, options_.self.name, options_.self.address, options_.protocol_version,
      version < options_.protocol_version ? name : options_.self.name);
}

Status Handshake::take_peer(const flatbuffers::Vector<uint8_t>& nonce,
                            const proto::Identity& identity) {
  const bool is_proper = nonce.size() == kHandshakeNonceBytes && identity.node_id() != 0 &&
                         identity.port() != 0 && is_proper_text(*identity.name()) &&
                         is_proper_text(*identity.address()) &&
                         is_proper_text(*identity.braid_version());
  if (!is_proper)
    return {StatusCode::Protocol, "the nonce or the identity in its hello is malformed"};
  std::copy(nonce.begin(), nonce.end(), peer_nonce_.begin());
  if (peer_nonce_ == nonce_) return {StatusCode::Protocol, "it sent our own nonce back"};
  peer_ =
      Peer{identity.node_id(), identity.name()->str(), identity.address()->str(), identity.port()};
  peer_braid_version_ = identity.braid_version()->str();
  return Status::ok();
}

Sha256Digest Handshake::proof_of(HandshakeRole prover) const {
  const bool is_ours = prover == role_;
  std::vector<uint8_t> message;
  append_bytes(message, prover == HandshakeRole::Client ? kClientLabel : kServerLabel);
  append_number(message, options_.protocol_version);
  const auto append_nonce = [&](const HandshakeNonce& nonce) {
    message.insert(message.end(), nonce.begin(), nonce.end());
  };
  const auto append_self = [&] { append_identity(message, options_.self, BRAID_VERSION); };
  const auto append_peer = [&] { append_identity(message, peer_, peer_braid_version_); };
  if (is_ours) {
    append_nonce(nonce_);
    append_nonce(peer_nonce_);
    append_self();
    append_peer();
  } else {
    append_nonce(peer_nonce_);
    append_nonce(nonce_);
    append_peer();
    append_self();
  }
  return hmac_sha256(options_.cluster_key, message);
}

bool Handshake::is_proof_of_peer(const flatbuffers::Vector<uint8_t>& proof) const {
  const auto peer_role =
      role_ == HandshakeRole::Client ? HandshakeRole::Server : HandshakeRole::Client;
  return equal_in_constant_time(proof_of(peer_role), {proof.data(), proof.size()});
}

}  // namespace braid
