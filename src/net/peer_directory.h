// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "net/control_connection.h"
#include "net/control_plane.h"
#include "net/peer.h"

namespace braid {

// Somebody who wants to talk with a peer that may not hear us any more.
struct WaitingConnect {
  std::string host;
  uint16_t port = 0;
  ControlPlane::ConnectCallback callback;
};

// A connected peer. The first connection is the one used for sending; the others are only read.
struct PeerEntry {
  Peer peer;
  std::vector<std::unique_ptr<ControlConnection>> connections;
  uint64_t met_at_ms = 0;  // when the first connection was established
  uint64_t heard_at_ms = 0;
  uint64_t answered_at_ms = 0;  // when the latest heartbeat of ours was sent that it has answered
  uint64_t to_answer_ms = 0;    // what its latest heartbeat carried, by its clock
  std::vector<WaitingConnect> waiting;  // until it has answered, or is lost
  std::vector<std::pair<std::string, uint16_t>>
      names;  // host and port under which it was asked for or says it is
};

// Who is connected, by id and by the names they are known under. Control loop only.
class PeerDirectory {
 public:
  static constexpr size_t kConnectionsPerPeerMax =
      8;  // a pair needs two at most; more come from several names of a host
  static constexpr size_t kNamesPerPeerMax = 16;

  enum class Added { NewPeer, AnotherConnection, TooMany };
  // `connection` is established. TooMany: it was left to the caller.
  Added add(std::unique_ptr<ControlConnection>& connection, uint64_t now_ms);
  // Remembers that host:port leads to the peer.
  void add_name(NodeId id, const std::string& host, uint16_t port);

  PeerEntry* find(NodeId id);
  const PeerEntry* find(NodeId id) const;
  const PeerEntry* find(const std::string& host, uint16_t port) const;
  bool is_sending(const ControlConnection& connection) const;
  // Takes a connection that isn't the sending one, or the whole peer, out.
  std::unique_ptr<ControlConnection> remove_connection(const ControlConnection& connection);
  PeerEntry remove(NodeId id);

  const std::unordered_map<NodeId, PeerEntry>& entries() const { return entries_; }
  std::unordered_map<NodeId, PeerEntry>& entries() { return entries_; }

 private:
  std::unordered_map<NodeId, PeerEntry> entries_;
};

}  // namespace braid
