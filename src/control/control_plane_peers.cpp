// SPDX-License-Identifier: Apache-2.0
// What becomes of peers: the part of ControlPlaneImpl that watches them, connects with them again,
// and loses them.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/printable.h"
#include "control/control_plane_impl.h"
#include "control/peer_text.h"

namespace braid {
namespace {

// So many heartbeats without a word, and a new connection is tried: TCP sends again later and later
// while a network is gone, and may take as long again once it is back.
constexpr uint32_t kMissedHeartbeatsMax = 3;
constexpr uint32_t kReconnectsPerHeartbeat = 4;
constexpr uint32_t kReconnectEveryMsMin = 50;
constexpr size_t kGoodbyeBytesMax = 256;

std::string seconds_text(uint64_t ms) {
  return fmt::format("{:.1f} s", static_cast<double>(ms) / 1e3);
}

}  // namespace

Status ControlPlaneImpl::add_peer(std::unique_ptr<ControlConnection> connection) {
  const Peer peer = connection->peer();
  const Generations generations = connection->generations();
  const std::string version = connection->peer_braid_version();
  PeerEntry* known = peers_.find(peer.id);
  // A network that was gone for a moment may let only one of two nodes believe that the other is
  // lost. What the other believes has ended, too, then.
  if (known != nullptr && generations.peer > known->generations.peer) {
    lose(peer.id,
         make_status(StatusCode::Unavailable, "{} has lost us and connects again", describe(peer)),
         LostBy::Peer);
    known = peers_.find(peer.id);
  }
  // One of us has lost the other while they shook hands.
  const bool is_late = generations.own != peers_.generation_of(peer.id) ||
                       (known != nullptr && generations.peer != known->generations.peer);
  if (is_late) {
    connection->close();
    destroy_later(loop_, std::move(connection));
    return make_status(StatusCode::Unavailable, "{} has just been lost", describe(peer));
  }
  const bool was_silent = known != nullptr && known->is_reconnecting();
  if (was_silent) {
    BRAID_LOG_INFO(LogFields{.peer = peer.name}, "control plane: connected with {} again, {}",
                   describe(peer), describe_silence(*known));
    ++counters_.reconnects;
    known->reconnect->stop();
  }
  if (known == nullptr)
    BRAID_LOG_INFO(LogFields{.peer = peer.name}, "control plane: connected with {}, braid {}",
                   describe(peer), version);
  connection->set_owner(*this);
  if (auto surplus = peers_.add(std::move(connection), clock_.now_ms())) {
    surplus->close();
    destroy_later(loop_, std::move(surplus));
  }
  PeerEntry& entry = *peers_.find(peer.id);
  send_kept(entry);
  for (WaitingConnect& waiting : std::exchange(entry.waiting, {}))
    answer_later(peer.id, std::move(waiting.callback));
  if (heartbeat_timer_.is_active()) return Status::ok();
  ticked_at_ms_ = clock_.now_ms();
  heartbeat_timer_.start_repeating(options_.heartbeat_interval_ms, [this] { tick(); });
  return Status::ok();
}

// What the peer may have missed, on a new connection.
void ControlPlaneImpl::send_kept(PeerEntry& entry) {
  for (const PeerSession::Kept& kept : entry.session.kept()) {
    const Status sent =
        entry.sending()->send({kept.sequence, entry.session.acknowledge()}, kept.message);
    if (!sent) return;  // this one breaks, too
  }
}

// After a network was gone, TCP sends again only after seconds, and often in one direction first: a
// peer that we hear well may not hear us, and lose us in the middle of what we begin with it.
bool ControlPlaneImpl::is_in_doubt(const PeerEntry& entry) const {
  return entry.connections.empty() ||
         clock_.now_ms() >
             entry.answered_at_ms + kUnansweredHeartbeatsMax * options_.heartbeat_interval_ms;
}

void ControlPlaneImpl::send_heartbeat(PeerEntry& entry) {
  ControlConnection* sending = entry.sending();
  // Bytes that wait will be a sign of life as well, once the peer reads.
  if (sending == nullptr || sending->queued_bytes() != 0) return;
  flatbuffers::FlatBufferBuilder builder;
  const auto body = proto::CreateHeartbeat(builder, clock_.now_ms(), entry.to_answer_ms);
  builder.Finish(proto::CreateControlMessage(builder, proto::ControlBody::Heartbeat, body.Union()));
  (void)sending->send({0, entry.session.acknowledge()},
                      {builder.GetBufferPointer(), builder.GetSize()});
}

void ControlPlaneImpl::take_heartbeat(PeerEntry& entry, const proto::Heartbeat& heartbeat) {
  entry.to_answer_ms = heartbeat.sent_ms();
  const uint64_t answered_ms = std::min(heartbeat.answered_ms(), clock_.now_ms());
  entry.answered_at_ms = std::max(entry.answered_at_ms, answered_ms);
  if (is_in_doubt(entry)) return;
  for (WaitingConnect& waiting : std::exchange(entry.waiting, {}))
    answer_later(entry.peer.id, std::move(waiting.callback));
}

void ControlPlaneImpl::send_goodbye(PeerEntry& entry, const std::string& reason) {
  flatbuffers::FlatBufferBuilder builder;
  const auto body = proto::CreateGoodbyeDirect(builder, reason.c_str());
  builder.Finish(proto::CreateControlMessage(builder, proto::ControlBody::Goodbye, body.Union()));
  if (ControlConnection* sending = entry.sending())
    (void)sending->send({0, entry.session.acknowledge()},
                        {builder.GetBufferPointer(), builder.GetSize()});
}

void ControlPlaneImpl::take_goodbye(const PeerEntry& entry, const proto::Goodbye& goodbye) {
  const std::string who = describe(entry.peer);
  const auto* reason = goodbye.reason();
  if (reason == nullptr || reason->size() == 0) {
    return lose(entry.peer.id,
                Status(StatusCode::Unavailable, who + " closed its control connection", UV_EOF),
                LostBy::Peer);
  }
  lose(entry.peer.id,
       make_status(StatusCode::Unavailable, "{} has given up this node: {}", who,
                   printable({reason->data(), reason->size()}, kGoodbyeBytesMax)),
       LostBy::Peer);
}

void ControlPlaneImpl::on_peer_broken(ControlConnection& connection, const Status& reason) {
  PeerEntry* entry = peers_.find(connection.peer().id);
  const bool was_sending = entry != nullptr && entry->sending() == &connection;
  destroy_later(loop_, peers_.remove_connection(connection));
  if (entry == nullptr) return;
  const std::string who = describe(entry->peer);
  if (reason.code() == StatusCode::Protocol) {
    // It would say the same again.
    return lose(entry->peer.id,
                make_status(StatusCode::Unavailable, "the control connection with {} broke: {}",
                            who, reason.message()));
  }
  if (reason.code() == StatusCode::PermissionDenied) {
    ++counters_.frames_refused;
    BRAID_LOG_WARN(LogFields{.peer = entry->peer.name},
                   "control plane: closed a connection with {}: {}", who, reason.message());
  }
  if (!entry->connections.empty()) {
    if (was_sending) send_kept(*entry);
    return;
  }
  entry->broken_at_ms = clock_.now_ms();
  entry->broken_reason = reason.message();
  begin_reconnect(*entry);
}

// --- connecting again ---

void ControlPlaneImpl::begin_reconnect(PeerEntry& entry) {
  if (!entry.reach || entry.is_reconnecting()) return;
  const NodeId id = entry.peer.id;
  BRAID_LOG_INFO(LogFields{.peer = entry.peer.name}, "control plane: connecting with {} again, {}",
                 describe(entry.peer), describe_silence(entry));
  const uint32_t every_ms =
      std::max(options_.heartbeat_interval_ms / kReconnectsPerHeartbeat, kReconnectEveryMsMin);
  if (entry.reconnect == nullptr) {
    entry.reconnect = std::make_unique<Reconnect>(
        loop_, handshake_options(), every_ms, options_.connect_timeout_ms,
        Reconnect::Hooks{[this, id](std::unique_ptr<ControlConnection> connection) {
                           on_reconnected(id, std::move(connection));
                         },
                         [this, id](const Status& reason) { on_reconnect_failed(id, reason); }});
  }
  entry.reconnect->start(*entry.reach);
}

void ControlPlaneImpl::on_reconnected(NodeId id, std::unique_ptr<ControlConnection> connection) {
  const Peer reached = connection->peer();
  PeerEntry* entry = peers_.find(id);
  BRAID_ASSERT(entry != nullptr, "attempts to reach a peer end with it");
  if (reached.id == options_.self.id) {
    connection->close();
    destroy_later(loop_, std::move(connection));
    entry->reconnect_failure = "its address leads to this node itself";
    return;
  }
  if (reached.id != id) {
    // A node id is new at each start, and an address is one daemon's.
    lose(id, make_status(StatusCode::Unavailable,
                         "{} has ended: {}, another process, is at its address now",
                         describe(entry->peer), describe(reached)));
  }
  (void)add_peer(std::move(connection));
}

void ControlPlaneImpl::on_reconnect_failed(NodeId id, const Status& reason) {
  PeerEntry* entry = peers_.find(id);
  BRAID_ASSERT(entry != nullptr, "attempts to reach a peer end with it");
  if (!entry->is_reconnecting()) return;
  entry->reconnect_failure = reason.message();
  // As long as the peer's kernel has not closed the connection, its process may be there.
  if (reason.cause() != UV_ECONNREFUSED || !entry->connections.empty()) return;
  lose(id, make_status(StatusCode::Unavailable,
                       "{} has ended: its control connection broke ({}), and nobody listens at {}",
                       describe(entry->peer), entry->broken_reason,
                       entry->reconnect->address().to_string()));
}

// --- silence and loss ---

// What else was measured, for people.
std::string ControlPlaneImpl::describe_silence(const PeerEntry& entry) const {
  const uint64_t now_ms = clock_.now_ms();
  const auto ago = [now_ms](uint64_t at_ms) {
    return seconds_text(now_ms - std::min(now_ms, at_ms));
  };
  std::string text = "heard last " + ago(entry.heard_at_ms) + " ago";
  if (!entry.broken_reason.empty()) {
    text += fmt::format("; its connection broke {} ago: {}", ago(entry.broken_at_ms),
                        entry.broken_reason);
  }
  if (!entry.reconnect_failure.empty())
    text += fmt::format("; connecting again failed: {}", entry.reconnect_failure);
  return text;
}

void ControlPlaneImpl::lose(NodeId id, const Status& reason, LostBy by) {
  PeerEntry entry = peers_.remove(id, by == LostBy::Us);
  if (by == LostBy::Us) send_goodbye(entry, reason.message());
  if (entry.reconnect != nullptr) {
    entry.reconnect->close();
    destroy_later(loop_, std::move(entry.reconnect));
  }
  for (auto& connection : entry.connections) {
    connection->close();
    destroy_later(loop_, std::move(connection));
  }
  if (peers_.entries().empty()) heartbeat_timer_.stop();
  for (WaitingConnect& waiting : entry.waiting) {
    loop_.defer(lifetime_.guard([this, waiting = std::move(waiting)]() mutable {
      connect(waiting.host, waiting.port, std::move(waiting.callback));
    }));
  }
  if (TcpStream::is_end_of_stream(reason)) {
    BRAID_LOG_INFO(LogFields{.peer = entry.peer.name}, "control plane: {}", reason.message());
  } else {
    BRAID_LOG_WARN(LogFields{.peer = entry.peer.name}, "control plane: {}", reason.message());
  }
  handler_.on_peer_lost(entry.peer, reason);
}

void ControlPlaneImpl::lose_later(NodeId id, Status reason) {
  loop_.defer(lifetime_.guard([this, id, reason = std::move(reason)] {
    if (peers_.find(id) != nullptr) lose(id, reason);
  }));
}

void ControlPlaneImpl::tick() {
  const uint64_t now_ms = clock_.now_ms();
  const uint64_t slept_ms = now_ms - ticked_at_ms_;
  ticked_at_ms_ = now_ms;
  // If this process itself stood still, what peers sent meanwhile waits unread: that time is not
  // their silence.
  const bool stood_still = slept_ms > 2ull * options_.heartbeat_interval_ms;
  std::vector<NodeId> silent;
  for (auto& [id, entry] : peers_.entries()) {
    if (stood_still) {
      entry.heard_at_ms += slept_ms - options_.heartbeat_interval_ms;
      entry.moved_at_ms += slept_ms - options_.heartbeat_interval_ms;
    }
    entry.heard_at_ms = std::min(entry.heard_at_ms, now_ms);
    note_movement(entry, now_ms);
    if (now_ms - entry.heard_at_ms >= options_.peer_timeout_ms) silent.push_back(id);
    send_heartbeat(entry);
    const uint64_t still_ms = now_ms - std::min(now_ms, entry.moved_at_ms);
    const bool is_still = still_ms > kMissedHeartbeatsMax * options_.heartbeat_interval_ms;
    if (is_still || entry.connections.empty()) {
      begin_reconnect(entry);
    } else if (entry.is_reconnecting()) {
      entry.reconnect->stop();
      entry.reconnect_failure.clear();
    }
    close_idle(entry, now_ms);
  }
  for (const NodeId id : silent) {
    const PeerEntry* entry = peers_.find(id);
    if (entry == nullptr) continue;  // the handler's reaction to another loss
    lose(id, make_status(StatusCode::Unavailable, "{} is silent: {}", describe(entry->peer),
                         describe_silence(*entry)));
  }
}

// Bytes that come, and bytes of a message that the peer's kernel acknowledges, show that the
// network works: a new connection would only begin a long message once more. What this node's
// kernel has taken shows nothing: it holds megabytes, the work of seconds on a slow path.
// Heartbeats and their answers wait behind such a message; one that comes and answers nothing new
// means that ours are lost.
void ControlPlaneImpl::note_movement(PeerEntry& entry, uint64_t now_ms) {
  uint64_t received = 0;
  for (const auto& connection : entry.connections) received += connection->received_bytes();
  const bool is_taken = !entry.connections.empty() && entry.sending()->has_taken_more();
  const bool has_come = received > entry.received_bytes;
  const bool has_spoken = entry.to_answer_ms != entry.noted_to_answer_ms;
  const bool has_answered = entry.answered_at_ms > entry.noted_answered_at_ms;
  if (has_come) entry.heard_at_ms = now_ms;
  if (is_taken || (has_come && (!has_spoken || has_answered || !is_in_doubt(entry))))
    entry.moved_at_ms = now_ms;
  entry.received_bytes = received;
  entry.noted_to_answer_ms = entry.to_answer_ms;
  entry.noted_answered_at_ms = entry.answered_at_ms;
}

// Connections from before the newest, on which the peer sends nothing any more, either.
void ControlPlaneImpl::close_idle(PeerEntry& entry, uint64_t now_ms) {
  const auto is_idle = [&](const std::unique_ptr<ControlConnection>& connection) {
    return connection.get() != entry.sending() &&
           now_ms > connection->heard_at_ms() + options_.peer_timeout_ms;
  };
  for (auto& connection : entry.connections) {
    if (!is_idle(connection)) continue;
    connection->close();
    destroy_later(loop_, std::move(connection));
  }
  std::erase(entry.connections, nullptr);
}

}  // namespace braid
