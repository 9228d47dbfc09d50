// SPDX-License-Identifier: Apache-2.0
#include "net/control_plane.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "net/control_plane_impl.h"
#include "net/peer_text.h"

namespace braid {
namespace {

Status check_options(const ControlPlaneOptions& options) {
  const auto invalid = [](std::string text) {
    return Status(StatusCode::InvalidArgument, std::move(text));
  };
  if (options.self.id == 0) return invalid("a node id must not be 0");
  if (options.self.name.empty()) return invalid("node.name must not be empty");
  if (options.self.address.empty()) return invalid("node.address must not be empty");
  const auto listen = SocketAddress::parse(options.listen_address, options.listen_port);
  if (!listen) {
    return invalid(fmt::format("control.listen is '{}': it must be a numeric IPv4 or IPv6 address",
                               options.listen_address));
  }
  if (options.cluster_key.empty() && !listen->is_loopback()) {
    return invalid(
        fmt::format("control.listen is '{}', which other hosts can reach: set "
                    "control.cluster_key_file, or listen at 127.0.0.1",
                    options.listen_address));
  }
  if (options.heartbeat_interval_ms == 0 || options.connect_timeout_ms == 0) {
    return invalid("control.heartbeat_interval_ms and control.connect_timeout_ms must not be 0");
  }
  if (options.strangers_max == 0) return invalid("strangers_max must not be 0");
  if (options.peer_timeout_ms / 2 < options.heartbeat_interval_ms) {
    return invalid(
        fmt::format("control.peer_timeout_ms is {}: it must be at least twice "
                    "control.heartbeat_interval_ms ({}), or every peer seems silent",
                    options.peer_timeout_ms, options.heartbeat_interval_ms));
  }
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<ControlPlane>> ControlPlane::create(Loop& loop, const Clock& clock,
                                                           ControlPlaneOptions options,
                                                           ControlPlaneHandler& handler) {
  BRAID_ASSERT_IN_LOOP(loop);
  BRAID_RETURN_IF_ERROR(check_options(options));
  auto plane = std::make_unique<ControlPlaneImpl>(loop, clock, std::move(options), handler);
  BRAID_RETURN_IF_ERROR(plane->listen());
  return std::unique_ptr<ControlPlane>(std::move(plane));
}

ControlPlaneImpl::ControlPlaneImpl(Loop& loop, const Clock& clock, ControlPlaneOptions options,
                                   ControlPlaneHandler& handler)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      handler_(handler),
      stranger_log_(clock),
      heartbeat_timer_(loop),
      alive_(std::make_shared<ControlPlaneImpl*>(this)) {}

ControlPlaneImpl::~ControlPlaneImpl() { *alive_ = nullptr; }

Status ControlPlaneImpl::listen() {
  const auto address = SocketAddress::parse(options_.listen_address, options_.listen_port);
  BRAID_ASSERT(address.has_value(), "checked by create()");
  auto listener = TcpListener::create(
      loop_, *address, kControlSendQueueBytesMax,
      [this](Result<std::unique_ptr<TcpStream>> stream) { on_stranger(std::move(stream)); });
  if (!listener) {
    return listener.status().with_context("the control plane (control.listen, control.port)");
  }
  listener_ = std::move(*listener);
  if (options_.self.port == 0) options_.self.port = listener_->address().port();
  own_address_ = std::make_unique<OwnAddress>(listener_->address(), options_.self.address);
  return Status::ok();
}

const Peer* ControlPlaneImpl::find(NodeId id) const {
  if (id == options_.self.id) return &options_.self;
  const PeerEntry* entry = peers_.find(id);
  return entry == nullptr ? nullptr : &entry->peer;
}

std::vector<Peer> ControlPlaneImpl::peers() const {
  std::vector<Peer> result;
  for (const auto& [id, entry] : peers_.entries()) result.push_back(entry.peer);
  return result;
}

// --- messages ---

Status ControlPlaneImpl::send(NodeId to, flatbuffers::FlatBufferBuilder& message) {
  BRAID_ASSERT_IN_LOOP(loop_);
  if (to == options_.self.id) {
    if (to_self_bytes_ + message.GetSize() > kControlSendQueueBytesMax) {
      return make_status(StatusCode::ResourceExhausted,
                         "{} bytes of messages to itself wait already", to_self_bytes_);
    }
    if (to_self_.empty()) {
      loop_.defer([alive = alive_] {
        if (*alive != nullptr) (*alive)->deliver_to_self();
      });
    }
    to_self_bytes_ += message.GetSize();
    to_self_.push_back(message.Release());
    ++counters_.messages_sent;
    return Status::ok();
  }
  PeerEntry* entry = peers_.find(to);
  if (entry == nullptr) {
    return make_status(StatusCode::Unavailable, "node {:016x} is not connected", to);
  }
  const Status status =
      entry->connections.front()->send({message.GetBufferPointer(), message.GetSize()});
  if (!status) {
    return status.with_context(
        status.code() == StatusCode::ResourceExhausted
            ? fmt::format("{} does not read what it is sent", describe(entry->peer))
            : describe(entry->peer));
  }
  ++counters_.messages_sent;
  return Status::ok();
}

void ControlPlaneImpl::deliver_to_self() {
  // What the handler sends to this node while it takes one of these is delivered after them.
  std::deque<flatbuffers::DetachedBuffer> messages = std::move(to_self_);
  to_self_.clear();
  to_self_bytes_ = 0;
  for (const auto& message : messages) {
    ++counters_.messages_received;
    handler_.on_control_message(options_.self,
                                *flatbuffers::GetRoot<proto::ControlMessage>(message.data()));
  }
}

void ControlPlaneImpl::on_message(ControlConnection& connection,
                                  const proto::ControlMessage& message) {
  PeerEntry* entry = peers_.find(connection.peer().id);
  if (entry == nullptr) return;  // this daemon's connection to itself
  entry->heard_at_ms = clock_.now_ms();
  if (const auto* heartbeat = message.body_as_Heartbeat()) {
    take_heartbeat(*entry, *heartbeat);
    return;
  }
  ++counters_.messages_received;
  const Peer from = entry->peer;  // the handler may cause the peer's loss
  handler_.on_control_message(from, message);
}

// --- peers ---

void ControlPlaneImpl::on_established(ControlConnection& connection) {
  auto owned = take_stranger(connection);
  BRAID_ASSERT(owned != nullptr, "only accepted connections are established here");
  if (connection.peer().id == options_.self.id) {
    // Our own attempt at the other end sees who it has reached and closes. Nothing else ends this
    // one.
    strangers_.push_back(std::move(owned));
    return;
  }
  add_peer(std::move(owned));
}

// After a network was gone, TCP sends again only after seconds, and often in one direction first: a
// peer that we hear well may not hear us, and lose us in the middle of what we begin with it.
bool ControlPlaneImpl::is_in_doubt(const PeerEntry& entry) const {
  return clock_.now_ms() >
         entry.answered_at_ms + kUnansweredHeartbeatsMax * options_.heartbeat_interval_ms;
}

void ControlPlaneImpl::send_heartbeat(PeerEntry& entry) {
  // Bytes that wait will be a sign of life as well, once the peer reads.
  ControlConnection& sending = *entry.connections.front();
  if (sending.queued_bytes() != 0) return;
  flatbuffers::FlatBufferBuilder builder;
  const auto body = proto::CreateHeartbeat(builder, clock_.now_ms(), entry.to_answer_ms);
  builder.Finish(proto::CreateControlMessage(builder, proto::ControlBody::Heartbeat, body.Union()));
  static_cast<void>(sending.send({builder.GetBufferPointer(), builder.GetSize()}).is_ok());
}

void ControlPlaneImpl::take_heartbeat(PeerEntry& entry, const proto::Heartbeat& heartbeat) {
  entry.to_answer_ms = heartbeat.sent_ms();
  const uint64_t answered_ms = std::min(heartbeat.answered_ms(), clock_.now_ms());
  entry.answered_at_ms = std::max(entry.answered_at_ms, answered_ms);
  if (is_in_doubt(entry)) return;
  for (WaitingConnect& waiting : std::exchange(entry.waiting, {}))
    answer_later(entry.peer.id, std::move(waiting.callback));
}

// A network that was gone for a moment may let only one of two nodes believe that the other is
// lost. What we would send on the old connection goes nowhere then. Two nodes that connect with
// each other at the same time do not know each other either: but both connections are new.
bool ControlPlaneImpl::has_forgotten_us(const PeerEntry& entry,
                                        const ControlConnection& connection) const {
  const uint64_t known_ms = clock_.now_ms() - entry.met_at_ms;
  return connection.is_first_of_peer() && known_ms > options_.connect_timeout_ms;
}

void ControlPlaneImpl::add_peer(std::unique_ptr<ControlConnection> connection) {
  if (const PeerEntry* known = peers_.find(connection->peer().id);
      known != nullptr && has_forgotten_us(*known, *connection)) {
    lose(known->peer.id, make_status(StatusCode::Unavailable, "{} has lost us and connects again",
                                     describe(known->peer)));
  }
  connection->set_owner(*this);
  connection->set_unacknowledged_timeout(options_.peer_timeout_ms);
  const Peer peer = connection->peer();
  const std::string version = connection->peer_braid_version();
  switch (peers_.add(connection, clock_.now_ms())) {
    case PeerDirectory::Added::NewPeer:
      BRAID_LOG_INFO("control plane: connected with {}, braid {}", describe(peer), version);
      break;
    case PeerDirectory::Added::AnotherConnection:
      break;
    case PeerDirectory::Added::TooMany:
      connection->close();
      destroy_later(loop_, std::move(connection));
      break;
  }
  if (heartbeat_timer_.is_active()) return;
  ticked_at_ms_ = clock_.now_ms();
  heartbeat_timer_.start_repeating(options_.heartbeat_interval_ms, [this] { tick(); });
}

void ControlPlaneImpl::on_broken(ControlConnection& connection, const Status& reason) {
  if (auto stranger = take_stranger(connection)) {
    if (!connection.has_been_established())
      refuse(connection.remote().to_string(), reason.message());
    destroy_later(loop_, std::move(stranger));
    return;
  }
  if (!peers_.is_sending(connection)) {
    destroy_later(loop_, peers_.remove_connection(connection));
    return;
  }
  const PeerEntry& entry = *peers_.find(connection.peer().id);
  const std::string who = describe(entry.peer);
  const auto lost = [&](std::string text) {
    lose(entry.peer.id, Status(StatusCode::Unavailable, std::move(text), reason.cause()));
  };
  if (TcpStream::is_end_of_stream(reason)) {
    lost(fmt::format("{} closed its control connection", who));
  } else if (reason.cause() == UV_ETIMEDOUT) {
    lost(fmt::format("{} has been silent for {} ms", who, options_.peer_timeout_ms));
  } else if (reason.cause() == UV_ECONNRESET || reason.cause() == UV_EPIPE) {
    lost(fmt::format("{} closed its control connection ({})", who, uv_strerror(reason.cause())));
  } else {
    lost(fmt::format("the control connection with {} broke: {}", who, reason.message()));
  }
}

void ControlPlaneImpl::lose(NodeId id, const Status& reason) {
  PeerEntry entry = peers_.remove(id);
  for (auto& connection : entry.connections) {
    connection->close();
    destroy_later(loop_, std::move(connection));
  }
  if (peers_.entries().empty()) heartbeat_timer_.stop();
  for (WaitingConnect& waiting : entry.waiting) {
    loop_.defer([alive = alive_, waiting = std::move(waiting)]() mutable {
      if (*alive == nullptr) return;
      (*alive)->connect(waiting.host, waiting.port, std::move(waiting.callback));
    });
  }
  if (TcpStream::is_end_of_stream(reason)) {
    BRAID_LOG_INFO("control plane: {}", reason.message());
  } else {
    BRAID_LOG_WARN("control plane: {}", reason.message());
  }
  handler_.on_peer_lost(entry.peer, reason);
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
    if (stood_still) entry.heard_at_ms += slept_ms - options_.heartbeat_interval_ms;
    entry.heard_at_ms = std::min(entry.heard_at_ms, now_ms);
    if (now_ms - entry.heard_at_ms >= options_.peer_timeout_ms) silent.push_back(id);
    send_heartbeat(entry);
  }
  for (const NodeId id : silent) {
    const PeerEntry* entry = peers_.find(id);
    if (entry == nullptr) continue;  // the handler's reaction to another loss
    lose(id, make_status(StatusCode::Unavailable, "{} has been silent for {} ms",
                         describe(entry->peer), now_ms - entry->heard_at_ms));
  }
}

}  // namespace braid
