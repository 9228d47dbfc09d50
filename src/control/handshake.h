// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hmac.h"
#include "base/peer.h"
#include "base/status.h"
#include "control/frame_seal.h"
#include "control/node_key.h"
#include "proto/control_generated.h"
#include "proto/version.h"

namespace braid {

using HandshakeNonce = PublicKey;  // of the connection's key exchange

enum class HandshakeRole : uint8_t { Client, Server };  // who connected, who accepted

struct HandshakeOptions {
  Peer self;  // its id is that of node_key
  std::shared_ptr<const NodeKey> node_key;
  std::vector<uint8_t> cluster_key;
  bool encrypts = false;  // transport.encryption, which both sides must have alike
  // How often this node has lost that one: see Generations. Empty: never.
  std::function<uint64_t(NodeId)> generation;
  uint32_t protocol_version = proto::kControlProtocolVersion;
};

// What the two ends of a connection have said of their sessions. The numbers of messages go on from
// an earlier connection when both generations are as they were on that one.
struct Generations {
  uint64_t own = 0;
  uint64_t peer = 0;
};

// By which the frames after the handshake are protected.
struct FrameKeys {
  Sha256Digest sending{};
  Sha256Digest receiving{};
};

// The proof that both sides of a control connection know the cluster key, and that each is the node
// whose id it gives: frames in, frames out, no input or output of its own. Which proof belongs to
// which side is part of what is proved, so a proof that is sent back to its maker proves nothing.
// proto/SPEC.md has the bytes.
class Handshake {
 public:
  struct Step {
    std::vector<uint8_t> reply;  // to be sent first; may be empty
    Status error;                // not Ok: over; send `reply`, then close
  };

  Handshake(HandshakeRole role, HandshakeOptions options);

  // The client's first frame. Once.
  std::vector<uint8_t> hello();
  // The next frame that came. Not after is_done() or an error.
  Step receive(std::span<const uint8_t> frame);

  bool is_done() const { return state_ == State::Done; }
  const Peer& peer() const {
    return peer_;
  }  // proved once is_done(); claimed before: id 0 if nothing was
  const std::string& peer_braid_version() const { return peer_braid_version_; }
  // Both once is_done().
  const Generations& generations() const { return generations_; }
  const FrameKeys& frame_keys() const { return frame_keys_; }
  FrameProtection frame_protection() const {
    return options_.encrypts ? FrameProtection::Encrypted : FrameProtection::Authenticated;
  }

 private:
  // client: Start ─hello()→ AwaitServerHello ─ServerHello→ AwaitAccepted ─HandshakeAccepted→ Done
  // server: AwaitClientHello ─ClientHello→ AwaitClientProof ─ClientProof→ Done
  // any state: anything else, a wrong proof or version, HandshakeRefused → Failed
  enum class State : uint8_t {
    Start,
    AwaitServerHello,
    AwaitAccepted,
    AwaitClientHello,
    AwaitClientProof,
    Done,
    Failed
  };

  Step on_client_hello(const proto::ClientHello& hello);
  Step on_server_hello(const proto::ServerHello& hello);
  Step on_client_proof(const proto::ClientProof& proof);
  Step on_refused(const proto::HandshakeRefused& refused);
  Step on_unexpected();
  Step fail(Status error);
  Step refuse(Status error);

  Status take_version(uint32_t version, const proto::Identity& identity) const;
  Status take_encryption(bool encrypts) const;
  Status take_peer(const flatbuffers::Vector<uint8_t>& nonce, const proto::Identity& identity);
  // What that side proves and signs.
  std::vector<uint8_t> transcript_of(HandshakeRole role) const;
  Status check_proofs(const flatbuffers::Vector<uint8_t>& proof,
                      const flatbuffers::Vector<uint8_t>* signature) const;
  Status make_frame_keys();

  const HandshakeRole role_;
  const HandshakeOptions options_;
  State state_;
  const KeyExchange exchange_;
  const HandshakeNonce nonce_;
  HandshakeNonce peer_nonce_{};
  Peer peer_;
  PublicKey peer_key_{};
  std::string peer_braid_version_;
  Generations generations_;
  FrameKeys frame_keys_;
};

}  // namespace braid
