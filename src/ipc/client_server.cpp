// SPDX-License-Identifier: Apache-2.0
#include "ipc/client_server.h"

#include <cerrno>
#include <utility>

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "ipc/client_connection.h"
#include "proto/client_generated.h"
#include "proto/version.h"

namespace braid {
namespace {

constexpr int kAcceptsPerEvent = 32;      // then the loop's other handles have their turn
constexpr uint64_t kAcceptPauseMs = 100;  // without descriptors, accept would fail again at once
constexpr uint64_t kWaitingLogPeriodMs = 5000;
// The socket, the process, and what comes with a message.
constexpr uint64_t kDescriptorsOfConnection = 2 + kFrameFdsMax;

}  // namespace

Result<std::unique_ptr<ClientServer>> ClientServer::create(Loop& loop, ClientServerOptions options,
                                                           ClientHandler& handler) {
  auto listener = UnixListener::create(options.path, options.group, options.mode);
  if (!listener) return listener.status();
  std::unique_ptr<ClientServer> server(new ClientServer(loop, std::move(options), handler));
  server->listener_ = std::move(*listener);
  BRAID_RETURN_IF_ERROR(server->start());
  return server;
}

ClientServer::ClientServer(Loop& loop, ClientServerOptions options, ClientHandler& handler)
    : loop_(loop),
      options_(std::move(options)),
      handler_(handler),
      reading_(loop, options_.clock != nullptr ? *options_.clock : system_clock_),
      checking_(options_.worker == nullptr ? nullptr
                                           : std::make_unique<UserWork>(loop, *options_.worker)),
      closer_(options_.close_descriptor),
      resume_timer_(loop) {}

ClientServer::~ClientServer() { stop_accepting(); }

Status ClientServer::start() {
  auto poll = Poll::create(loop_, listener_->fd());
  if (!poll) return poll.status();
  listener_poll_ = std::move(*poll);
  resume_accepting();
  return Status::ok();
}

void ClientServer::resume_accepting() {
  if (listener_poll_) listener_poll_->start(UV_READABLE, [this](int) { accept_some(); });
}

void ClientServer::stop_accepting() {
  BRAID_ASSERT_IN_LOOP(loop_);
  resume_timer_.stop();
  listener_poll_.reset();
  if (listener_ == nullptr) return;
  // Those who have connected and were not accepted may have sent descriptors.
  closer_.close(::geteuid(), listener_->take_fd());
  listener_.reset();
}

void ClientServer::accept_some() {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    if (const size_t closing = closer_.waiting(); closing >= options_.descriptors_closing_max) {
      return pause_accepting(fmt::format(
          "{} descriptors that clients have sent are still to be closed, most of them of user {}",
          closing, closer_.fullest_owner()));
    }
    Fd socket(::accept4(listener_->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      return pause_accepting(
          Status::from_errno(errno, "cannot accept on the client socket").message());
    }
    accept_one(std::move(socket));
  }
}

void ClientServer::accept_one(Fd socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    BRAID_LOG_WARN("a client was dropped: {}", Status::from_errno(errno, "SO_PEERCRED").message());
    return;
  }
  if (connections_.size() >= options_.connections_max) {
    return refuse(std::move(socket), peer.uid,
                  fmt::format("braidd on node '{}' has {} connections already, its limit",
                              options_.node_name, options_.connections_max));
  }
  if (closer_.is_full(peer.uid)) {
    return refuse(std::move(socket), peer.uid,
                  fmt::format("braidd on node '{}' is still closing descriptors that user {} has "
                              "sent and that take long to close",
                              options_.node_name, peer.uid));
  }
  // Urgent bytes that are not read in line would be thrown away, and the descriptors with them.
  const int yes = 1;
  static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_OOBINLINE, &yes, sizeof(yes)));
  UserCharge charge(options_.quotas, peer.uid, UserResource::Connections);
  if (const Status room = charge.set(1); !room) {
    return refuse(std::move(socket), peer.uid, room.message());
  }
  UserCharge descriptors(options_.quotas, peer.uid, UserResource::Descriptors);
  if (const Status room = descriptors.set(kDescriptorsOfConnection); !room) {
    return refuse(std::move(socket), peer.uid, room.message());
  }
  const uint64_t id = next_id_++;
  const ClientCredentials credentials{peer.pid, peer.uid, peer.gid};
  std::unique_ptr<ClientConnection> connection(
      new ClientConnection(*this, id, std::move(socket), credentials));
  connection->charge_ = std::move(charge);
  connection->descriptors_ = std::move(descriptors);
  if (const Status status = connection->start(); !status) {
    BRAID_LOG_WARN(LogFields{.user = credentials.uid}, "process {} was dropped: {}",
                   credentials.pid, status.message());
    return;
  }
  connections_.emplace(id, std::move(connection));
}

// Tells why, as far as a socket that nobody waits for takes it.
void ClientServer::refuse(Fd socket, uid_t owner, const std::string& error) {
  ++counters_.connections_refused;
  BRAID_LOG_WARN(LogFields{.user = owner}, "clients are refused: {}", error);
  flatbuffers::FlatBufferBuilder builder;
  build_hello_reply(builder, options_, error);
  FrameWriter writer(builder.GetSize() + kFrameHeaderBytes);
  if (writer.push({builder.GetBufferPointer(), builder.GetSize()}, {}).is_ok()) {
    static_cast<void>(writer.flush(socket.get()));
  }
  drop(std::move(socket), owner);
}

// What is closed with unread messages closes the descriptors in them, too. After the shutdown
// nothing is added to those; mostly there are none.
void ClientServer::drop(Fd socket, uid_t owner) {
  if (!socket.is_valid()) return;
  int unread = 0;
  const bool is_down = ::shutdown(socket.get(), SHUT_RDWR) == 0 || errno == ENOTCONN;
  if (is_down && ::ioctl(socket.get(), FIONREAD, &unread) == 0 && unread == 0) return;
  closer_.close(owner, std::move(socket));
}

void ClientServer::pause_accepting(const std::string& reason) {
  ++counters_.connections_refused;
  const uint64_t now_ms = uv_now(loop_.uv());
  if (now_ms >= next_waiting_log_ms_) {
    BRAID_LOG_WARN("clients must wait: {}", reason);
    next_waiting_log_ms_ = now_ms + kWaitingLogPeriodMs;
  }
  listener_poll_->stop();
  resume_timer_.start_once(kAcceptPauseMs, [this] { resume_accepting(); });
}

void ClientServer::on_closed(ClientConnection& connection, Status reason) {
  loop_.defer(lifetime_.guard([this, id = connection.id(), reason = std::move(reason)] {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const std::unique_ptr<ClientConnection> closed = std::move(found->second);
    connections_.erase(found);
    if (closed->was_connected_) {
      handler_.on_client_closed(*closed, reason);
    } else {
      BRAID_LOG_WARN(LogFields{.user = closed->credentials().uid}, "a client was dropped: {}",
                     reason.message());
    }
  }));
}

ClientServerCounters ClientServer::counters() const {
  ClientServerCounters counters = counters_;
  counters.connections_open = connections_.size();
  counters.descriptors_closing = closer_.waiting();
  return counters;
}

void ClientServer::build_hello_reply(flatbuffers::FlatBufferBuilder& builder,
                                     const ClientServerOptions& options, const std::string& error) {
  const auto reply = proto::CreateHelloReplyDirect(
      builder, proto::kClientProtocolVersion, options.daemon_version.c_str(),
      options.node_name.c_str(), error.empty() ? nullptr : error.c_str(), options.address.c_str(),
      options.node);
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::HelloReply, reply.Union()));
}

}  // namespace braid
