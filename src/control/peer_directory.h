// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/peer.h"
#include "control/control_plane.h"
#include "control/peer_channel.h"
#include "control/peer_liveness.h"
#include "control/reconnect.h"

namespace braid {

// Somebody who wants to talk with a peer that may not hear us any more.
struct WaitingConnect {
  std::string host;
  uint16_t port = 0;
  ControlPlane::ConnectCallback callback;
};

// A peer that is not lost. It may have no connection for a while.
struct PeerEntry {
  explicit PeerEntry(uint32_t heartbeat_interval_ms) : liveness(heartbeat_interval_ms) {}

  Peer peer;
  Generations generations;
  PeerChannel channel;
  PeerLiveness liveness;
  std::optional<SocketAddress> reach;    // where it can be connected with again
  std::unique_ptr<Reconnect> reconnect;  // once that was tried
  uint64_t broken_at_ms = 0;             // when the last connection broke, and why, …
  std::string broken_reason;             // … empty: there is one
  std::string reconnect_failure;         // of the latest attempt; empty: none has failed
  std::vector<WaitingConnect> waiting;   // until it has answered, or is lost
  std::vector<std::pair<std::string, uint16_t>>
      names;  // host and port under which it was asked for or says it is

  bool is_reconnecting() const { return reconnect != nullptr && reconnect->is_trying(); }
  bool is_in_doubt(uint64_t now_ms) const {
    return !channel.is_connected() || liveness.is_in_doubt(now_ms);
  }
  // What was measured, for people.
  std::string describe_silence(uint64_t now_ms) const;
};

// Who is connected, by id and by the names they are known under. Control loop only.
class PeerDirectory {
 public:
  static constexpr size_t kNamesPerPeerMax = 16;

  explicit PeerDirectory(uint32_t heartbeat_interval_ms)
      : heartbeat_interval_ms_(heartbeat_interval_ms) {}

  // Makes `connection`, which is established, the one that is used for sending.
  PeerEntry& add(std::unique_ptr<ControlConnection> connection, uint64_t now_ms);
  // Remembers that host:port leads to the peer.
  void add_name(NodeId id, const std::string& host, uint16_t port);

  PeerEntry* find(NodeId id);
  const PeerEntry* find(NodeId id) const;
  const PeerEntry* find(const std::string& host, uint16_t port) const;
  // Takes the peer out. `is_ours`: this node has given it up, and says so when they meet again.
  PeerEntry remove(NodeId id, bool is_ours);
  // Grows whenever this node gives that one up: so a peer that still believes in the time before
  // learns that it is over.
  uint64_t generation_of(NodeId id) const;

  const std::unordered_map<NodeId, PeerEntry>& entries() const { return entries_; }
  std::unordered_map<NodeId, PeerEntry>& entries() { return entries_; }

 private:
  static constexpr size_t kGivenUpMax = 65536;

  const uint32_t heartbeat_interval_ms_;
  std::unordered_map<NodeId, PeerEntry> entries_;
  uint64_t times_given_up_ = 0;                    // of all peers
  std::unordered_map<NodeId, uint64_t> given_up_;  // which time was the peer's latest
  uint64_t forgotten_ = 0;                         // for all that are not in there
};

}  // namespace braid
