// SPDX-License-Identifier: Apache-2.0
#include "control/control_plane.h"

#include <utility>

#include "base/local_host.h"
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
    return invalid("heartbeat_interval_ms and connect_timeout_ms must not be 0");
  }
  if (options.strangers_max == 0) return invalid("strangers_max must not be 0");
  if (options.peer_timeout_ms / 2 < options.heartbeat_interval_ms) {
    return invalid(
        fmt::format("control.peer_timeout_ms is {}: it must be at least twice "
                    "heartbeat_interval_ms ({}), or every peer seems silent",
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
  } else if (error.cause() == UV_EADDRNOTAVAIL && is_local_host(address.host())) {
    advice =
        "the address is new, and the kernel still looks whether another host has it: start again "
        "in a moment";
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
      peers_(loop, clock, options_, handler, counters_,
             [this](WaitingConnect waiting) {
               connect(waiting.host, waiting.port, std::move(waiting.callback));
             }),
      strangers_(loop, clock, options_, counters_.connections_refused,
                 [this](std::unique_ptr<ControlConnection> connection) {
                   (void)peers_.add(std::move(connection));
                 }) {}

Status ControlPlaneImpl::listen() {
  const auto address = SocketAddress::parse(options_.listen_address, options_.listen_port);
  BRAID_ASSERT(address.has_value(), "checked by create()");
  if (options_.cluster_key.empty()) {  // nobody could prove to be a daemon
    if (options_.self.port == 0) options_.self.port = options_.listen_port;
    own_address_ = std::make_unique<OwnAddress>(*address, options_.self.address);
    return Status::ok();
  }
  auto listener = TcpListener::create(
      loop_, *address, kControlStreamBytesMax, [this](Result<std::unique_ptr<TcpStream>> stream) {
        strangers_.take(std::move(stream), peers_.handshake_options());
      });
  if (!listener) return why_not_listening(listener.status(), *address);
  listener_ = std::move(*listener);
  if (options_.self.port == 0) options_.self.port = listener_->address().port();
  own_address_ = std::make_unique<OwnAddress>(listener_->address(), options_.self.address);
  return Status::ok();
}

const Peer* ControlPlaneImpl::find(NodeId id) const {
  return id == options_.self.id ? &options_.self : peers_.find(id);
}

// --- attempts to connect ---

void ControlPlaneImpl::connect_for(std::optional<uint32_t> user, const std::string& host,
                                   uint16_t port, ConnectCallback callback) {
  BRAID_ASSERT_IN_LOOP(loop_);
  const Peer* known =
      own_address_->is_own_name(host, port) ? &options_.self : peers_.find(host, port);
  if (known != nullptr) return answer_when_sure(known->id, {host, port, std::move(callback)});
  for (const auto& attempt : attempts_) {
    if (attempt->port() != port || attempt->host() != host) continue;
    attempt->add(std::move(callback));
    return;
  }
  start_attempt(make_attempt(host, port, std::move(callback)), user, /*is_anew=*/false);
}

void ControlPlaneImpl::connect_anew(const std::string& host, uint16_t port,
                                    ConnectCallback callback) {
  BRAID_ASSERT_IN_LOOP(loop_);
  start_attempt(make_attempt(host, port, std::move(callback)), std::nullopt, /*is_anew=*/true);
}

void ControlPlaneImpl::answer_when_sure(NodeId id, WaitingConnect waiting) {
  if (id != options_.self.id) return peers_.answer_when_sure(id, std::move(waiting));
  loop_.defer(
      lifetime_.guard([this, callback = std::move(waiting.callback)] { callback(options_.self); }));
}

std::unique_ptr<ConnectAttempt> ControlPlaneImpl::make_attempt(const std::string& host,
                                                               uint16_t port,
                                                               ConnectCallback callback) {
  auto attempt = std::make_unique<ConnectAttempt>(
      loop_, clock_, host, port, peers_.handshake_options(), options_.connect_timeout_ms);
  attempt->add(std::move(callback));
  return attempt;
}

void ControlPlaneImpl::start_attempt(std::unique_ptr<ConnectAttempt> attempt,
                                     std::optional<uint32_t> user, bool is_anew) {
  ConnectAttempt::Hooks hooks;
  hooks.known_peer_at = [this, is_anew](const SocketAddress& address) {
    return is_anew ? std::nullopt : known_at(address);
  };
  hooks.self_at = [this](const SocketAddress& address) -> std::optional<Peer> {
    return own_address_->may_be_own(address) ? std::optional<Peer>(options_.self) : std::nullopt;
  };
  hooks.check = [this](const SocketAddress&) { return may_connect(); };
  hooks.done = [this, attempt = attempt.get()](Result<ConnectOutcome> outcome) {
    on_attempt_done(*attempt, std::move(outcome));
  };
  attempts_.push_back(std::move(attempt));
  attempts_.back()->start(std::move(hooks), user);
}

std::optional<Peer> ControlPlaneImpl::known_at(const SocketAddress& address) const {
  // Where this daemon does not listen, no other daemon that it could talk with does.
  const bool is_own =
      listener_ == nullptr ? own_address_->may_be_own(address) : own_address_->is_own(address);
  const Peer* known = is_own ? &options_.self : peers_.find(address.host(), address.port());
  return known == nullptr ? std::nullopt : std::optional<Peer>(*known);
}

Status ControlPlaneImpl::may_connect() const {
  if (!options_.cluster_key.empty()) return Status::ok();
  return make_status(StatusCode::PermissionDenied,
                     "node '{}' has no cluster key and so talks to no other daemon: set "
                     "control.cluster_key_file on all nodes",
                     options_.self.name);
}

void ControlPlaneImpl::on_attempt_done(ConnectAttempt& attempt, Result<ConnectOutcome> outcome) {
  auto ended = take_out(attempts_, attempt);
  const Result<Peer> result = settle(attempt, outcome);
  for (auto& callback : attempt.take_callbacks()) {
    if (!result) {
      callback(result);
    } else {
      answer_when_sure(result->id, {attempt.host(), attempt.port(), std::move(callback)});
    }
  }
  destroy_later(loop_, std::move(ended));
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
      ControlConnection::discard(std::move(outcome->connection));
      return options_.self;
    }
    const SocketAddress remote = outcome->connection->remote();
    BRAID_RETURN_IF_ERROR(peers_.add(std::move(outcome->connection)));
    peers_.add_name(peer.id, remote.host(), remote.port());
  }
  peers_.add_name(peer.id, attempt.host(), attempt.port());
  return peer;
}

// --- messages ---

Status ControlPlaneImpl::send(NodeId to, flatbuffers::FlatBufferBuilder& message) {
  BRAID_ASSERT_IN_LOOP(loop_);
  return to == options_.self.id ? send_to_self(message) : peers_.send(to, message);
}

Status ControlPlaneImpl::send_to_self(flatbuffers::FlatBufferBuilder& message) {
  if (to_self_bytes_ + message.GetSize() > kControlSendQueueBytesMax) {
    return make_status(StatusCode::ResourceExhausted, "{} bytes of messages to itself wait already",
                       to_self_bytes_);
  }
  if (to_self_.empty()) loop_.defer(lifetime_.guard([this] { deliver_to_self(); }));
  to_self_bytes_ += message.GetSize();
  to_self_.push_back(message.Release());
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

}  // namespace braid
