// SPDX-License-Identifier: Apache-2.0
#include "control/peer_directory.h"

#include <algorithm>

namespace braid {

std::string PeerEntry::describe_silence(uint64_t now_ms) const {
  const auto ago = [now_ms](uint64_t at_ms) {
    return fmt::format("{:.1f} s", static_cast<double>(now_ms - std::min(now_ms, at_ms)) / 1e3);
  };
  std::string text = "heard last " + ago(liveness.heard_at_ms()) + " ago";
  if (!broken_reason.empty()) {
    text += fmt::format("; its connection broke {} ago: {}", ago(broken_at_ms), broken_reason);
  }
  if (!reconnect_failure.empty())
    text += fmt::format("; connecting again failed: {}", reconnect_failure);
  return text;
}

PeerEntry& PeerDirectory::add(std::unique_ptr<ControlConnection> connection, uint64_t now_ms) {
  const Peer peer = connection->peer();
  const auto advertised = SocketAddress::parse(peer.address, peer.port);
  const SocketAddress remote = connection->remote();
  auto [position, is_new] = entries_.try_emplace(peer.id, heartbeat_interval_ms_);
  PeerEntry& entry = position->second;
  entry.liveness.on_connected(now_ms);
  entry.broken_reason.clear();
  entry.reconnect_failure.clear();
  // A loopback address means that peer only to those on its own host; others mean themselves by it.
  const bool is_elsewhere = advertised && advertised->is_loopback() && !remote.is_loopback();
  if (connection->role() == HandshakeRole::Client) {
    entry.reach = remote;
  } else if (!entry.reach) {
    entry.reach =
        advertised && !is_elsewhere ? *advertised : SocketAddress::parse(remote.host(), peer.port);
  }
  entry.generations = connection->generations();
  entry.channel.add(std::move(connection), now_ms);
  if (!is_new) return entry;
  entry.peer = peer;
  if (!is_elsewhere) add_name(peer.id, peer.address, peer.port);
  return entry;
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

PeerEntry PeerDirectory::remove(NodeId id, bool is_ours) {
  const auto found = entries_.find(id);
  BRAID_ASSERT(found != entries_.end(), "only known peers are removed");
  PeerEntry entry = std::move(found->second);
  entries_.erase(found);
  if (!is_ours) return entry;
  if (given_up_.size() >= kGivenUpMax) {
    given_up_.clear();
    forgotten_ = times_given_up_;
  }
  given_up_[id] = ++times_given_up_;
  return entry;
}

uint64_t PeerDirectory::generation_of(NodeId id) const {
  if (const PeerEntry* entry = find(id)) return entry->generations.own;
  const auto given_up = given_up_.find(id);
  return given_up == given_up_.end() ? forgotten_ : given_up->second;
}

}  // namespace braid
