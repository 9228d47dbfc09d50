// SPDX-License-Identifier: Apache-2.0
#include "control/peers.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/printable.h"
#include "control/peer_text.h"

namespace braid {
namespace {

constexpr uint32_t kReconnectsPerHeartbeat = 4;
constexpr uint32_t kReconnectEveryMsMin = 50;
constexpr size_t kGoodbyeBytesMax = 256;

Status just_lost(const Peer& peer) {
  return make_status(StatusCode::Unavailable, "{} has just been lost", describe(peer));
}

}  // namespace

Peers::Peers(Loop& loop, const Clock& clock, const ControlPlaneOptions& options,
             ControlPlaneHandler& handler, ControlPlaneCounters& counters,
             ConnectAgain connect_again)
    : loop_(loop),
      clock_(clock),
      options_(options),
      handler_(handler),
      counters_(counters),
      connect_again_(std::move(connect_again)),
      directory_(options.heartbeat_interval_ms),
      heartbeat_timer_(loop) {}

Peers::~Peers() {
  lifetime_.end();
  for (auto& [id, entry] : directory_.entries()) entry.channel.send_goodbye("");
}

HandshakeOptions Peers::handshake_options() const {
  HandshakeOptions options;
  options.self = options_.self;
  options.node_key = options_.node_key;
  options.cluster_key = options_.cluster_key;
  options.encrypts = options_.encrypts;
  options.generation = [this](NodeId id) { return directory_.generation_of(id); };
  return options;
}

Status Peers::add(std::unique_ptr<ControlConnection> connection) {
  const Peer peer = connection->peer();
  const Generations generations = connection->generations();
  PeerEntry* known = directory_.find(peer.id);
  // A network that was gone for a moment may let only one of two nodes believe that the other is
  // lost. What the other believes has ended, too, then.
  if (known != nullptr && generations.peer > known->generations.peer) {
    lose(peer.id,
         make_status(StatusCode::Unavailable, "{} has lost us and connects again", describe(peer)),
         LostBy::Peer);
    known = directory_.find(peer.id);
  }
  // One of us has lost the other while they shook hands.
  const bool is_late = generations.own != directory_.generation_of(peer.id) ||
                       (known != nullptr && generations.peer != known->generations.peer);
  if (is_late) {
    ControlConnection::discard(std::move(connection));
    return just_lost(peer);
  }
  if (known == nullptr) {
    BRAID_LOG_INFO(LogFields{.peer = peer.name}, "control plane: connected with {}, braid {}",
                   describe(peer), connection->peer_braid_version());
  } else if (known->is_reconnecting()) {
    BRAID_LOG_INFO(LogFields{.peer = peer.name}, "control plane: connected with {} again, {}",
                   describe(peer), known->describe_silence(clock_.now_ms()));
    ++counters_.reconnects;
    known->reconnect->stop();
  }
  connection->set_owner(*this);
  answer_waiting(directory_.add(std::move(connection), clock_.now_ms()));
  if (heartbeat_timer_.is_active()) return Status::ok();
  ticked_at_ms_ = clock_.now_ms();
  heartbeat_timer_.start_repeating(options_.heartbeat_interval_ms, [this] { tick(); });
  return Status::ok();
}

const Peer* Peers::find(NodeId id) const {
  const PeerEntry* entry = directory_.find(id);
  return entry == nullptr ? nullptr : &entry->peer;
}

const Peer* Peers::find(const std::string& host, uint16_t port) const {
  const PeerEntry* entry = directory_.find(host, port);
  return entry == nullptr ? nullptr : &entry->peer;
}

std::vector<Peer> Peers::all() const {
  std::vector<Peer> result;
  for (const auto& [id, entry] : directory_.entries()) result.push_back(entry.peer);
  return result;
}

std::optional<uint64_t> Peers::round_trip_ns(NodeId id) const {
  const PeerEntry* entry = directory_.find(id);
  return entry == nullptr ? std::nullopt : entry->channel.round_trip_ns();
}

// --- who waits for a peer ---

void Peers::answer_when_sure(NodeId id, WaitingConnect waiting) {
  PeerEntry* entry = directory_.find(id);
  BRAID_ASSERT(entry != nullptr, "who waits, waits for a peer");
  if (entry->is_in_doubt(clock_.now_ms())) {
    entry->waiting.push_back(std::move(waiting));
  } else {
    answer_later(entry->peer, std::move(waiting.callback));
  }
}

void Peers::answer_later(const Peer& peer, ControlPlane::ConnectCallback callback) {
  loop_.defer(lifetime_.guard([this, peer, callback = std::move(callback)] {
    callback(find(peer.id) != nullptr ? Result<Peer>(peer) : just_lost(peer));
  }));
}

void Peers::answer_waiting(PeerEntry& entry) {
  for (WaitingConnect& waiting : std::exchange(entry.waiting, {}))
    answer_later(entry.peer, std::move(waiting.callback));
}

// --- messages ---

Status Peers::send(NodeId to, const flatbuffers::FlatBufferBuilder& message) {
  PeerEntry* entry = directory_.find(to);
  if (entry == nullptr) {
    return make_status(StatusCode::Unavailable, "node {:016x} is not connected", to);
  }
  if (message.GetSize() > kControlMessageBytesMax) {
    return make_status(StatusCode::InvalidArgument,
                       "{}: a control message of {} bytes is longer than the {} that a frame takes",
                       describe(entry->peer), message.GetSize(), kControlMessageBytesMax);
  }
  Status status = entry->channel.send({message.GetBufferPointer(), message.GetSize()});
  if (!status) {
    status =
        status.with_context(fmt::format("{} does not take what it is sent", describe(entry->peer)));
    // The sender relies on it: without this message the peer would wait for ever, or do wrong.
    lose_later(to, status);
    return status;
  }
  ++counters_.messages_sent;
  return status;
}

PeerEntry& Peers::entry_of(const ControlConnection& connection) {
  PeerEntry* entry = directory_.find(connection.peer().id);
  BRAID_ASSERT(entry != nullptr, "a peer's connections end with it");
  return *entry;
}

void Peers::on_message(ControlConnection& connection, const FrameNumbers& numbers,
                       const proto::ControlMessage& message, size_t message_bytes) {
  PeerEntry& entry = entry_of(connection);
  const uint64_t now_ms = clock_.now_ms();
  entry.liveness.on_heard(now_ms);
  connection.set_heard_at_ms(now_ms);
  const Result<bool> is_due = entry.channel.receive(numbers, message_bytes);
  if (!is_due) return connection.fail(is_due.status());
  if (entry.channel.owes_acknowledgement())
    entry.channel.send_heartbeat(now_ms, entry.liveness.to_answer_ms());
  if (const auto* heartbeat = message.body_as_Heartbeat()) return take_heartbeat(entry, *heartbeat);
  if (const auto* goodbye = message.body_as_Goodbye()) return take_goodbye(entry, *goodbye);
  // An unknown message may be ignored, or the protocol version would be another one.
  if (!*is_due || message.body_type() > proto::ControlBody::MAX) return;
  ++counters_.messages_received;
  const Peer from = entry.peer;  // the handler may cause the peer's loss
  handler_.on_control_message(from, message);
}

void Peers::take_heartbeat(PeerEntry& entry, const proto::Heartbeat& heartbeat) {
  const uint64_t now_ms = clock_.now_ms();
  entry.liveness.on_heartbeat(heartbeat.sent_ms(), heartbeat.answered_ms(), now_ms);
  if (!entry.is_in_doubt(now_ms)) answer_waiting(entry);
}

void Peers::take_goodbye(const PeerEntry& entry, const proto::Goodbye& goodbye) {
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

// --- connecting again ---

void Peers::on_broken(ControlConnection& connection, const Status& reason) {
  PeerEntry& entry = entry_of(connection);
  entry.channel.remove(connection);
  const std::string who = describe(entry.peer);
  if (reason.code() == StatusCode::Protocol) {
    // It would say the same again.
    return lose(entry.peer.id,
                make_status(StatusCode::Unavailable, "the control connection with {} broke: {}",
                            who, reason.message()));
  }
  if (reason.code() == StatusCode::PermissionDenied) {
    ++counters_.frames_refused;
    BRAID_LOG_WARN(LogFields{.peer = entry.peer.name},
                   "control plane: closed a connection with {}: {}", who, reason.message());
  }
  if (entry.channel.is_connected()) return;
  entry.broken_at_ms = clock_.now_ms();
  entry.broken_reason = reason.message();
  begin_reconnect(entry);
}

void Peers::begin_reconnect(PeerEntry& entry) {
  if (!entry.reach || entry.is_reconnecting()) return;
  const NodeId id = entry.peer.id;
  BRAID_LOG_INFO(LogFields{.peer = entry.peer.name}, "control plane: connecting with {} again, {}",
                 describe(entry.peer), entry.describe_silence(clock_.now_ms()));
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

void Peers::on_reconnected(NodeId id, std::unique_ptr<ControlConnection> connection) {
  const Peer reached = connection->peer();
  PeerEntry* entry = directory_.find(id);
  BRAID_ASSERT(entry != nullptr, "attempts to reach a peer end with it");
  if (reached.id == options_.self.id) {
    ControlConnection::discard(std::move(connection));
    entry->reconnect_failure = "its address leads to this node itself";
    return;
  }
  if (reached.id != id) {
    // A node id is new at each start, and an address is one daemon's.
    lose(id, make_status(StatusCode::Unavailable,
                         "{} has ended: {}, another process, is at its address now",
                         describe(entry->peer), describe(reached)));
  }
  (void)add(std::move(connection));
}

void Peers::on_reconnect_failed(NodeId id, const Status& reason) {
  PeerEntry* entry = directory_.find(id);
  BRAID_ASSERT(entry != nullptr, "attempts to reach a peer end with it");
  if (!entry->is_reconnecting()) return;
  entry->reconnect_failure = reason.message();
  // As long as the peer's kernel has not closed the connection, its process may be there.
  if (reason.cause() != UV_ECONNREFUSED || entry->channel.is_connected()) return;
  lose(id, make_status(StatusCode::Unavailable,
                       "{} has ended: its control connection broke ({}), and nobody listens at {}",
                       describe(entry->peer), entry->broken_reason,
                       entry->reconnect->address().to_string()));
}

// --- silence and loss ---

void Peers::tick() {
  const uint64_t now_ms = clock_.now_ms();
  const uint64_t slept_ms = now_ms - ticked_at_ms_;
  ticked_at_ms_ = now_ms;
  const uint64_t interval_ms = options_.heartbeat_interval_ms;
  const uint64_t stood_still_ms = slept_ms > 2 * interval_ms ? slept_ms - interval_ms : 0;
  std::vector<NodeId> silent;
  for (auto& [id, entry] : directory_.entries()) {
    look_at(entry, stood_still_ms, now_ms);
    if (now_ms - entry.liveness.heard_at_ms() >= options_.peer_timeout_ms) silent.push_back(id);
  }
  for (const NodeId id : silent) {
    const PeerEntry* entry = directory_.find(id);
    if (entry == nullptr) continue;  // the handler's reaction to another loss
    lose(id, make_status(StatusCode::Unavailable, "{} is silent: {}", describe(entry->peer),
                         entry->describe_silence(now_ms)));
  }
}

void Peers::look_at(PeerEntry& entry, uint64_t stood_still_ms, uint64_t now_ms) {
  entry.liveness.look(entry.channel.received_bytes(), entry.channel.has_taken_more(),
                      stood_still_ms, now_ms);
  entry.channel.send_heartbeat(now_ms, entry.liveness.to_answer_ms());
  if (entry.liveness.is_still(now_ms) || !entry.channel.is_connected()) {
    begin_reconnect(entry);
  } else if (entry.is_reconnecting()) {
    entry.reconnect->stop();
    entry.reconnect_failure.clear();
  }
  entry.channel.close_idle(options_.peer_timeout_ms, now_ms);
}

void Peers::lose(NodeId id, const Status& reason, LostBy by) {
  PeerEntry entry = directory_.remove(id, by == LostBy::Us);
  if (by == LostBy::Us) entry.channel.send_goodbye(reason.message());
  if (entry.reconnect != nullptr) {
    entry.reconnect->close();
    destroy_later(loop_, std::move(entry.reconnect));
  }
  entry.channel.close();
  if (directory_.entries().empty()) heartbeat_timer_.stop();
  for (WaitingConnect& waiting : entry.waiting) {
    loop_.defer(lifetime_.guard(
        [this, waiting = std::move(waiting)]() mutable { connect_again_(std::move(waiting)); }));
  }
  if (TcpStream::is_end_of_stream(reason)) {
    BRAID_LOG_INFO(LogFields{.peer = entry.peer.name}, "control plane: {}", reason.message());
  } else {
    BRAID_LOG_WARN(LogFields{.peer = entry.peer.name}, "control plane: {}", reason.message());
  }
  handler_.on_peer_lost(entry.peer, reason);
}

void Peers::lose_later(NodeId id, Status reason) {
  loop_.defer(lifetime_.guard([this, id, reason = std::move(reason)] {
    if (find(id) != nullptr) lose(id, reason);
  }));
}

}  // namespace braid
