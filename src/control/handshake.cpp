// SPDX-License-Identifier: Apache-2.0
#include "control/handshake.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/printable.h"

namespace braid {
namespace {

using flatbuffers::FlatBufferBuilder;

constexpr size_t kTextBytesMax = 255;
constexpr std::string_view kClientLabel = "braid control client";
constexpr std::string_view kServerLabel = "braid control server";
constexpr std::string_view kClientFramesLabel = "braid control frames of the client";
constexpr std::string_view kServerFramesLabel = "braid control frames of the server";
constexpr const char* kWrongKey =
    "cluster key does not match: all nodes need the same content in control.cluster_key_file";

template <typename Table>
std::vector<uint8_t> finish(FlatBufferBuilder& builder, flatbuffers::Offset<Table> body) {
  builder.Finish(proto::CreateControlMessage(builder, proto::ControlBodyTraits<Table>::enum_value,
                                             body.Union()));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

template <typename Bytes>
flatbuffers::Offset<flatbuffers::Vector<uint8_t>> make_bytes(FlatBufferBuilder& builder,
                                                             const Bytes& bytes) {
  return builder.CreateVector(bytes.data(), bytes.size());
}

flatbuffers::Offset<proto::Identity> make_identity(FlatBufferBuilder& builder, const Peer& self,
                                                   const PublicKey& key) {
  const auto name = builder.CreateString(self.name);
  const auto address = builder.CreateString(self.address);
  const auto version = builder.CreateString(BRAID_VERSION);
  const auto key_bytes = make_bytes(builder, key);
  return proto::CreateIdentity(builder, self.id, name, address, self.port, version, key_bytes);
}

bool is_proper_text(const flatbuffers::String& text) {
  return text.size() > 0 && text.size() <= kTextBytesMax &&
         std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<uint8_t>(c) < ' ' || c == '\x7f'; });
}

template <typename Bytes>
void append_bytes(std::vector<uint8_t>& out, const Bytes& bytes) {
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

void append_identity(std::vector<uint8_t>& out, const Peer& peer, std::string_view version,
                     const PublicKey& key) {
  append_number(out, peer.id);
  append_number(out, peer.port);
  append_text(out, peer.name);
  append_text(out, peer.address);
  append_text(out, version);
  append_bytes(out, key);
}

}  // namespace

Handshake::Handshake(HandshakeRole role, HandshakeOptions options)
    : role_(role),
      options_(std::move(options)),
      state_(role == HandshakeRole::Client ? State::Start : State::AwaitClientHello),
      nonce_(exchange_.public_key()) {
  BRAID_ASSERT(options_.node_key != nullptr, "a node proves its id with its key");
}

std::vector<uint8_t> Handshake::hello() {
  BRAID_ASSERT(state_ == State::Start, "the client says hello, once");
  state_ = State::AwaitServerHello;
  FlatBufferBuilder builder;
  const auto nonce = make_bytes(builder, nonce_);
  const auto identity = make_identity(builder, options_.self, options_.node_key->public_key());
  return finish(builder, proto::CreateClientHello(builder, options_.protocol_version, nonce,
                                                  identity, options_.encrypts));
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
  if (Status status = take_encryption(hello.encrypts()); !status) return refuse(std::move(status));

  FlatBufferBuilder builder;
  const auto nonce = make_bytes(builder, nonce_);
  const auto identity = make_identity(builder, options_.self, options_.node_key->public_key());
  if (options_.generation) generations_.own = options_.generation(peer_.id);
  const auto transcript = transcript_of(role_);
  const auto proof = make_bytes(builder, hmac_sha256(options_.cluster_key, transcript));
  const auto signature = make_bytes(builder, options_.node_key->sign(transcript));
  state_ = State::AwaitClientProof;
  return {finish(builder,
                 proto::CreateServerHello(builder, options_.protocol_version, nonce, identity,
                                          proof, signature, generations_.own, options_.encrypts)),
          {}};
}

Handshake::Step Handshake::on_server_hello(const proto::ServerHello& hello) {
  if (Status status = take_version(hello.protocol_version(), *hello.identity()); !status) {
    return refuse(std::move(status));
  }
  if (Status status = take_peer(*hello.nonce(), *hello.identity()); !status) {
    return fail(std::move(status));
  }
  if (Status status = take_encryption(hello.encrypts()); !status) return refuse(std::move(status));
  generations_.peer = hello.generation();
  if (Status status = check_proofs(*hello.proof(), hello.signature()); !status)
    return refuse(std::move(status));
  if (Status status = make_frame_keys(); !status) return fail(std::move(status));

  FlatBufferBuilder builder;
  if (options_.generation) generations_.own = options_.generation(peer_.id);
  const auto transcript = transcript_of(role_);
  const auto proof = make_bytes(builder, hmac_sha256(options_.cluster_key, transcript));
  const auto signature = make_bytes(builder, options_.node_key->sign(transcript));
  state_ = State::AwaitAccepted;
  return {finish(builder, proto::CreateClientProof(builder, proof, signature, generations_.own)),
          {}};
}

Handshake::Step Handshake::on_client_proof(const proto::ClientProof& proof) {
  generations_.peer = proof.generation();
  if (Status status = check_proofs(*proof.proof(), proof.signature()); !status)
    return refuse(std::move(status));
  if (Status status = make_frame_keys(); !status) return fail(std::move(status));
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
  const auto name = printable({identity.name()->data(), identity.name()->size()}, kTextBytesMax);
  const auto address =
      printable({identity.address()->data(), identity.address()->size()}, kTextBytesMax);
  return make_status(
      StatusCode::Protocol,
      "node '{}' ({}) speaks control protocol {}, node '{}' ({}) speaks {}: upgrade node '{}'",
      name, address, version, options_.self.name, options_.self.address, options_.protocol_version,
      version < options_.protocol_version ? name : options_.self.name);
}

// Not proved yet: a lie here only ends the handshake, for what this side encrypts is in what both
// prove.
Status Handshake::take_encryption(bool encrypts) const {
  if (encrypts == options_.encrypts) return Status::ok();
  const auto on_or_off = [](bool is_on) { return is_on ? "on" : "off"; };
  return make_status(StatusCode::Mismatch,
                     "transport.encryption is {} on node '{}' ({}) and {} on node '{}' ({}): set "
                     "the same on all nodes",
                     on_or_off(encrypts), peer_.name, peer_.address, on_or_off(options_.encrypts),
                     options_.self.name, options_.self.address);
}

Status Handshake::take_peer(const flatbuffers::Vector<uint8_t>& nonce,
                            const proto::Identity& identity) {
  const auto* key = identity.public_key();
  const bool is_proper =
      nonce.size() == nonce_.size() && key != nullptr && key->size() == peer_key_.size() &&
      identity.node_id() != 0 && identity.port() != 0 && is_proper_text(*identity.name()) &&
      is_proper_text(*identity.address()) && is_proper_text(*identity.braid_version());
  if (!is_proper)
    return {StatusCode::Protocol, "the nonce or the identity in its hello is malformed"};
  std::copy(key->begin(), key->end(), peer_key_.begin());
  if (NodeKey::id_of(peer_key_) != identity.node_id()) {
    return make_status(StatusCode::PermissionDenied,
                       "it gives the node id {:016x}, which is not that of its key",
                       identity.node_id());
  }
  std::copy(nonce.begin(), nonce.end(), peer_nonce_.begin());
  if (peer_nonce_ == nonce_) return {StatusCode::Protocol, "it sent our own nonce back"};
  peer_ =
      Peer{identity.node_id(), identity.name()->str(), identity.address()->str(), identity.port()};
  peer_braid_version_ = identity.braid_version()->str();
  return Status::ok();
}

std::vector<uint8_t> Handshake::transcript_of(HandshakeRole prover) const {
  const bool is_ours = prover == role_;
  std::vector<uint8_t> message;
  append_bytes(message, prover == HandshakeRole::Client ? kClientLabel : kServerLabel);
  append_number(message, options_.protocol_version);
  append_number(message, static_cast<uint8_t>(options_.encrypts));
  const auto append_self = [&] {
    append_identity(message, options_.self, BRAID_VERSION, options_.node_key->public_key());
  };
  const auto append_peer = [&] { append_identity(message, peer_, peer_braid_version_, peer_key_); };
  if (is_ours) {
    append_bytes(message, nonce_);
    append_bytes(message, peer_nonce_);
    append_self();
    append_peer();
    append_number(message, generations_.own);
  } else {
    append_bytes(message, peer_nonce_);
    append_bytes(message, nonce_);
    append_peer();
    append_self();
    append_number(message, generations_.peer);
  }
  return message;
}

Status Handshake::check_proofs(const flatbuffers::Vector<uint8_t>& proof,
                               const flatbuffers::Vector<uint8_t>* signature) const {
  const auto transcript =
      transcript_of(role_ == HandshakeRole::Client ? HandshakeRole::Server : HandshakeRole::Client);
  const Sha256Digest expected = hmac_sha256(options_.cluster_key, transcript);
  if (!equal_in_constant_time(expected, {proof.data(), proof.size()}))
    return {StatusCode::PermissionDenied, kWrongKey};
  if (signature != nullptr &&
      NodeKey::verify(peer_key_, transcript, {signature->data(), signature->size()})) {
    return Status::ok();
  }
  return make_status(StatusCode::PermissionDenied,
                     "it has the cluster key, but not the key of node {:016x}, whose id it gives",
                     peer_.id);
}

Status Handshake::make_frame_keys() {
  const auto secret = exchange_.agree(peer_nonce_);
  if (!secret) return {StatusCode::Protocol, "its nonce is no proper public key"};
  const auto key_of = [&](HandshakeRole sender) {
    const bool is_client = role_ == HandshakeRole::Client;
    std::vector<uint8_t> message;
    append_bytes(message,
                 sender == HandshakeRole::Client ? kClientFramesLabel : kServerFramesLabel);
    append_bytes(message, *secret);
    append_bytes(message, is_client ? nonce_ : peer_nonce_);
    append_bytes(message, is_client ? peer_nonce_ : nonce_);
    return hmac_sha256(options_.cluster_key, message);
  };
  frame_keys_.sending = key_of(role_);
  frame_keys_.receiving =
      key_of(role_ == HandshakeRole::Client ? HandshakeRole::Server : HandshakeRole::Client);
  return Status::ok();
}

}  // namespace braid
