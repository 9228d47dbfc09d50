// SPDX-License-Identifier: Apache-2.0
// How connections come about: the half of ControlPlaneImpl that deals with strangers and with
// attempts to connect.
#include <algorithm>

#include "base/log.h"
#include "control/control_plane_impl.h"
#include "control/peer_text.h"

namespace braid {

HandshakeOptions ControlPlaneImpl::handshake_options() const {
  HandshakeOptions options;
  options.self = options_.self;
  options.node_key = options_.node_key;
  options.cluster_key = options_.cluster_key;
  options.generation = [this](NodeId id) { return peers_.generation_of(id); };
  return options;
}

// --- strangers ---

void ControlPlaneImpl::on_stranger(Result<std::unique_ptr<TcpStream>> stream) {
  if (!stream) {
    refuse("a stranger", stream.status().message());
    return;
  }
  // Who is slow makes room for who is new: an honest handshake is over in a few round trips.
  if (strangers_.size() >= options_.strangers_max) {
    auto oldest = std::move(strangers_.front());
    strangers_.pop_front();
    oldest->close();
    refuse(oldest->remote().to_string(),
           fmt::format("it had not completed the handshake when more than {} others waited",
                       options_.strangers_max));
    destroy_later(loop_, std::move(oldest));
  }
  auto connection = ControlConnection::accept(loop_, std::move(*stream), handshake_options(),
                                              options_.connect_timeout_ms, *this);
  if (connection == nullptr) {
    refuse("a stranger", "it was gone before it was accepted");
    return;
  }
  strangers_.push_back(std::move(connection));
}

void ControlPlaneImpl::refuse(const std::string& who, const std::string& reason) {
  ++counters_.connections_refused;
  stranger_log_.refused(who, reason);
}

std::unique_ptr<ControlConnection> ControlPlaneImpl::take_stranger(
    const ControlConnection& connection) {
  const auto found = std::find_if(strangers_.begin(), strangers_.end(),
                                  [&](const auto& one) { return one.get() == &connection; });
  if (found == strangers_.end()) return nullptr;
  auto taken = std::move(*found);
  strangers_.erase(found);
  return taken;
}

// --- attempts ---

void ControlPlaneImpl::connect_for(std::optional<uint32_t> user, const std::string& host,
                                   uint16_t port, ConnectCallback callback) {
  BRAID_ASSERT_IN_LOOP(loop_);
  if (own_address_->is_own_name(host, port)) {
    answer_later(options_.self.id, std::move(callback));
    return;
  }
  if (const PeerEntry* entry = peers_.find(host, port)) {
    answer_when_sure(*peers_.find(entry->peer.id), {host, port, std::move(callback)});
    return;
  }
  start_attempt(user, host, port, std::move(callback));
}

void ControlPlaneImpl::answer_later(NodeId id, ConnectCallback callback) {
  const std::string name = describe(*find(id));
  loop_.defer(lifetime_.guard([this, id, name, callback = std::move(callback)] {
    const Peer* peer = find(id);
    if (peer != nullptr) {
      callback(Peer(*peer));
    } else {
      callback(make_status(StatusCode::Unavailable, "{} has just been lost", name));
    }
  }));
}

void ControlPlaneImpl::answer_when_sure(PeerEntry& entry, WaitingConnect waiting) {
  if (is_in_doubt(entry)) {
    entry.waiting.push_back(std::move(waiting));
  } else {
    answer_later(entry.peer.id, std::move(waiting.callback));
  }
}

void ControlPlaneImpl::start_attempt(std::optional<uint32_t> user, const std::string& host,
                                     uint16_t port, ConnectCallback callback) {
  for (const auto& attempt : attempts_) {
    if (attempt->port() != port || attempt->host() != host) continue;
    attempt->add(std::move(callback));
    return;
  }
  ConnectAttempt::Hooks hooks;
  hooks.known_peer_at = [this](const SocketAddress& address) -> std::optional<Peer> {
    if (is_own(address)) return options_.self;
    const PeerEntry* entry = peers_.find(address.host(), address.port());
    return entry == nullptr ? std::nullopt : std::optional<Peer>(entry->peer);
  };
  hooks.self_at = [this](const SocketAddress& address) -> std::optional<Peer> {
    return own_address_->may_be_own(address) ? std::optional<Peer>(options_.self) : std::nullopt;
  };
  hooks.check = [this](const SocketAddress&) { return may_connect(); };
  auto attempt = std::make_unique<ConnectAttempt>(loop_, clock_, host, port, handshake_options(),
                                                  options_.connect_timeout_ms);
  hooks.done = [this, attempt = attempt.get()](Result<ConnectOutcome> outcome) {
    on_attempt_done(*attempt, std::move(outcome));
  };
  attempt->add(std::move(callback));
  attempts_.push_back(std::move(attempt));
  attempts_.back()->start(std::move(hooks), user);
}

bool ControlPlaneImpl::is_own(const SocketAddress& address) const {
  // Where this daemon does not listen, no other daemon that it could talk with does.
  return listener_ == nullptr ? own_address_->may_be_own(address) : own_address_->is_own(address);
}

Status ControlPlaneImpl::may_connect() const {
  if (!options_.cluster_key.empty()) return Status::ok();
  return make_status(StatusCode::PermissionDenied,
                     "node '{}' has no cluster key and so talks to no other daemon: set "
                     "control.cluster_key_file on all nodes",
                     options_.self.name);
}

void ControlPlaneImpl::on_attempt_done(ConnectAttempt& attempt, Result<ConnectOutcome> outcome) {
  const auto found = std::find_if(attempts_.begin(), attempts_.end(),
                                  [&](const auto& one) { return one.get() == &attempt; });
  BRAID_ASSERT(found != attempts_.end(), "an attempt ends once");
  auto owned = std::move(*found);
  attempts_.erase(found);
  const Result<Peer> result = settle(attempt, outcome);
  auto callbacks = attempt.take_callbacks();
  const std::string host = attempt.host();
  const uint16_t port = attempt.port();
  destroy_later(loop_, std::move(owned));

  for (auto& callback : callbacks) {
    PeerEntry* entry = result.is_ok() ? peers_.find(result->id) : nullptr;
    if (entry != nullptr && is_in_doubt(*entry)) {
      entry->waiting.push_back({host, port, std::move(callback)});
      continue;
    }
    // An earlier callback's doing may have cost us the peer.
    const bool is_lost = result.is_ok() && find(result->id) == nullptr;
    callback(is_lost ? Result<Peer>(make_status(StatusCode::Unavailable, "{} has just been lost",
                                                describe(*result)))
                     : result);
  }
}

// Who was reached, and what remains to be done about it.
Result<Peer> ControlPlaneImpl::settle(const ConnectAttempt& attempt,
                                      Result<ConnectOutcome>& outcome) {
  if (!outcome) return outcome.status();
  Peer peer;
  if (outcome->known) {
    peer = *outcome->known;
  } else {
    peer = outcome->connection->peer();
    if (peer.id == options_.self.id) {
      outcome->connection->close();
      destroy_later(loop_, std::move(outcome->connection));
      return options_.self;
    }
    const SocketAddress remote = outcome->connection->remote();
    BRAID_RETURN_IF_ERROR(add_peer(std::move(outcome->connection)));
    peers_.add_name(peer.id, remote.host(), remote.port());
  }
  peers_.add_name(peer.id, attempt.host(), attempt.port());
  return peer;
}

}  // namespace braid
