// SPDX-License-Identifier: Apache-2.0
#include "control/control_plane.h"

#include <algorithm>
#include <utility>

#include "base/local_host.h"
#include "base/log.h"
#include "control/control_plane_impl.h"
#include "control/peer_text.h"

namespace braid {
namespace {

Status check_options(const ControlPlaneOptions& options) {
  const auto invalid = [](std::string text) {
    return Status(StatusCode::InvalidArgument, std::move(text));
  };
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

Status why_not_listening(const Status& error, const SocketAddress& address) {
  std::string advice = "set control.listen and control.port to what it can listen at";
  if (error.cause() == UV_EADDRINUSE) {
    advice = fmt::format(
        "another program listens at port {} (ss -ltnp shows which one): stop it, or set "
        "control.port, to the same on all nodes",
        address.port());
  } else if (error.cause() == UV_EADDRNOTAVAIL) {
    advice = fmt::format(
        "that is no address of this machine, which has {}: set node.address (or control.listen, if "
        "that is set) to one of these, or to auto",
        own_interfaces());
  } else if (error.cause() == UV_EACCES) {
    advice = "set control.port to one that its user may use, such as 7410, the same on all nodes";
  }
  return {error.code(),
          fmt::format("the control plane (control.listen, control.port): {}; {}", error.message(),
                      advice),
          error.cause()};
}

}  // namespace

Result<std::unique_ptr<ControlPlane>> ControlPlane::create(Loop& loop, const Clock& clock,
                                                           ControlPlaneOptions options,
                                                           ControlPlaneHandler& handler) {
  BRAID_ASSERT_IN_LOOP(loop);
  BRAID_RETURN_IF_ERROR(check_options(options));
  if (options.node_key == nullptr) options.node_key = std::make_shared<const NodeKey>();
  options.self.id = options.node_key->id();
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
      heartbeat_timer_(loop) {}

ControlPlaneImpl::~ControlPlaneImpl() {
  lifetime_.end();
  for (auto& [id, entry] : peers_.entries()) send_goodbye(entry, "");
}

Status ControlPlaneImpl::listen() {
  const auto address = SocketAddress::parse(options_.listen_address, options_.listen_port);
  BRAID_ASSERT(address.has_value(), "checked by create()");
  if (options_.cluster_key.empty()) {  // nobody could prove to be a daemon
    if (options_.self.port == 0) options_.self.port = options_.listen_port;
    own_address_ = std::make_unique<OwnAddress>(*address, options_.self.address);
    return Status::ok();
  }
  auto listener = TcpListener::create(
      loop_, *address, kControlStreamBytesMax,
      [this](Result<std::unique_ptr<TcpStream>> stream) { on_stranger(std::move(stream)); });
  if (!listener) return why_not_listening(listener.status(), *address);
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

std::optional<uint64_t> ControlPlaneImpl::round_trip_ns(NodeId id) const {
  const PeerEntry* entry = peers_.find(id);
  if (entry == nullptr || entry->connections.empty()) return std::nullopt;
  return entry->connections.back()->round_trip_ns();
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
    if (to_self_.empty()) loop_.defer(lifetime_.guard([this] { deliver_to_self(); }));
    to_self_bytes_ += message.GetSize();
    to_self_.push_back(message.Release());
    ++counters_.messages_sent;
    return Status::ok();
  }
  PeerEntry* entry = peers_.find(to);
  if (entry == nullptr) {
    return make_status(StatusCode::Unavailable, "node {:016x} is not connected", to);
  }
  if (message.GetSize() > kControlMessageBytesMax) {
    return make_status(StatusCode::InvalidArgument,
                       "{}: a control message of {} bytes is longer than the {} that a frame takes",
                       describe(entry->peer), message.GetSize(), kControlMessageBytesMax);
  }
  const std::span<const uint8_t> bytes(message.GetBufferPointer(), message.GetSize());
  const Result<uint64_t> sequence = entry->session.keep(bytes);
  if (!sequence) {
    Status status = sequence.status().with_context(
        fmt::format("{} does not take what it is sent", describe(entry->peer)));
    // The sender relies on it: without this message the peer would wait for ever, or do wrong.
    lose_later(to, status);
    return status;
  }
  // Without a connection, or if this one breaks, it goes out on the next one.
  if (ControlConnection* sending = entry->sending())
    (void)sending->send({*sequence, entry->session.acknowledge()}, bytes);
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

void ControlPlaneImpl::on_message(ControlConnection& connection, const FrameNumbers& numbers,
                                  const proto::ControlMessage& message, size_t message_bytes) {
  PeerEntry* entry = peers_.find(connection.peer().id);
  if (entry == nullptr) return;  // this daemon's connection to itself
  entry->heard_at_ms = clock_.now_ms();
  connection.set_heard_at_ms(entry->heard_at_ms);
  const Result<bool> is_due = entry->session.receive(numbers, message_bytes);
  if (!is_due) return connection.fail(is_due.status());
  if (entry->session.owes_acknowledgement()) send_heartbeat(*entry);
  if (const auto* heartbeat = message.body_as_Heartbeat())
    return take_heartbeat(*entry, *heartbeat);
  if (const auto* goodbye = message.body_as_Goodbye()) return take_goodbye(*entry, *goodbye);
  // An unknown message may be ignored, or the protocol version would be another one.
  if (!*is_due || message.body_type() > proto::ControlBody::MAX) return;
  ++counters_.messages_received;
  const Peer from = entry->peer;  // the handler may cause the peer's loss
  handler_.on_control_message(from, message);
}

void ControlPlaneImpl::on_established(ControlConnection& connection) {
  auto owned = take_stranger(connection);
  BRAID_ASSERT(owned != nullptr, "only accepted connections are established here");
  if (connection.peer().id == options_.self.id) {
    // Our own attempt at the other end sees who it has reached and closes. Nothing else ends this
    // one.
    strangers_.push_back(std::move(owned));
    return;
  }
  (void)add_peer(std::move(owned));
}

void ControlPlaneImpl::on_broken(ControlConnection& connection, const Status& reason) {
  if (auto stranger = take_stranger(connection)) {
    if (!connection.has_been_established())
      refuse(connection.remote().to_string(), reason.message());
    destroy_later(loop_, std::move(stranger));
    return;
  }
  on_peer_broken(connection, reason);
}

}  // namespace braid
