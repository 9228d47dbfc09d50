// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/hmac.h"
#include "net/peer.h"
#include "proto/control_generated.h"
#include "proto/version.h"

namespace braid {

inline constexpr size_t kHandshakeNonceBytes = 32;
using HandshakeNonce = std::array<uint8_t, kHandshakeNonceBytes>;

enum class HandshakeRole : uint8_t { Client, Server };  // who connected, who accepted

struct HandshakeOptions {
  Peer self;
  std::vector<uint8_t> cluster_key;
  std::function<bool(NodeId)> knows;  // client: is it connected with that node? Empty: with none
  std::string refusal;  // server: not empty: whoever says hello is refused with this reason
  uint32_t protocol_version = proto::kControlProtocolVersion;
};

// The proof that both sides of a control connection know the cluster key: frames in, frames out, no
// input or output of its own. Which proof belongs to which side is part of what is proved, so a
// proof that is sent back to its maker proves nothing. proto/SPEC.md has the bytes.
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
  // Server, once is_done(): the client says that it has no other connection with this node.
  bool is_first_of_client() const { return is_first_of_client_; }

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
  Status take_peer(const flatbuffers::Vector<uint8_t>& nonce, const proto::Identity& identity);
  Sha256Digest proof_of(HandshakeRole role) const;
  bool is_proof_of_peer(const flatbuffers::Vector<uint8_t>& proof) const;

  const HandshakeRole role_;
  const HandshakeOptions options_;
  State state_;
  HandshakeNonce nonce_{};
  HandshakeNonce peer_nonce_{};
  Peer peer_;
  std::string peer_braid_version_;
  bool is_first_of_client_ = false;
};

}  // namespace braid
