// SPDX-License-Identifier: Apache-2.0
#include "net/peer_directory.h"

#include <algorithm>

namespace braid {

PeerDirectory::Added PeerDirectory::add(std::unique_ptr<ControlConnection>& connection,
                                        uint64_t now_ms) {
  const Peer peer = connection->peer();
  const auto advertised = SocketAddress::parse(peer.address, peer.port);
  const SocketAddress remote = connection->remote();
  auto [position, is_new] = entries_.try_emplace(peer.id);
  PeerEntry& entry = position->second;
  if (entry.connections.size() >= kConnectionsPerPeerMax) return Added::TooMany;
  entry.connections.push_back(std::move(connection));
  entry.heard_at_ms = now_ms;
  if (!is_new) return Added::AnotherConnection;
  entry.peer = peer;
  entry.met_at_ms = now_ms;
  entry.answered_at_ms = now_ms;  // a handshake goes there and back
  // A loopback address means that peer only to those on its own host; others mean themselves by it.
  const bool is_elsewhere = advertised && advertised->is_loopback() && !remote.is_loopback();
  if (!is_elsewhere) add_name(peer.id, peer.address, peer.port);
  return Added::NewPeer;
}

void PeerDirectory::add_name(NodeId id, const std::string& host, uint16_t port) {
  PeerEntry* entry = find(id);
  if (entry == nullptr || entry->names.size() >= kNamesPerPeerMax) return;
  const std::pair<std::string, uint16_t> name{host, port};
  if (std::find(entry->names.begin(), entry->names.end(), name) == entry->names.end()) {
    entry->names.push_back(name);
  }
}

PeerEntry* PeerDirectory::find(NodeId id) {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

const PeerEntry* PeerDirectory::find(NodeId id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

const PeerEntry* PeerDirectory::find(const std::string& host, uint16_t port) const {
  for (const auto& [id, entry] : entries_) {
    for (const auto& name : entry.names) {
      if (name.second == port && name.first == host) return &entry;
    }
  }
  return nullptr;
}

bool PeerDirectory::is_sending(const ControlConnection& connection) const {
  const PeerEntry* entry = find(connection.peer().id);
  return entry != nullptr && entry->connections.front().get() == &connection;
}

std::unique_ptr<ControlConnection> PeerDirectory::remove_connection(
    const ControlConnection& connection) {
  PeerEntry* entry = find(connection.peer().id);
  if (entry == nullptr) return nullptr;
  const auto found = std::find_if(entry->connections.begin() + 1, entry->connections.end(),
                                  [&](const auto& one) { return one.get() == &connection; });
  if (found == entry->connections.end()) return nullptr;
  auto removed = std::move(*found);
  entry->connections.erase(found);
  return removed;
}

PeerEntry PeerDirectory::remove(NodeId id) {
  const auto found = entries_.find(id);
  BRAID_ASSERT(found != entries_.end(), "only connected peers are removed");
  PeerEntry entry = std::move(found->second);
  entries_.erase(found);
  return entry;
}

}  // namespace braid
