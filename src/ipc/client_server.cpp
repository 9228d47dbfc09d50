// SPDX-License-Identifier: Apache-2.0
#include "ipc/client_server.h"

#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "base/log.h"
#include "ipc/client_connection.h"
#include "proto/client_generated.h"
#include "proto/version.h"

namespace braid {
namespace {

constexpr int kAcceptsPerEvent = 32;      // then the loop's other handles have their turn
constexpr uint64_t kAcceptPauseMs = 100;  // without descriptors, accept would fail again at once
constexpr uint64_t kRefusalLogPeriodMs = 5000;

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
    : loop_(loop), options_(std::move(options)), handler_(handler), resume_timer_(loop) {}

ClientServer::~ClientServer() { *alive_ = false; }

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
  listener_.reset();
}

void ClientServer::accept_some() {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    Fd socket(::accept4(listener_->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) pause_accepting(errno);
      return;
    }
    if (connections_.size() < options_.connections_max) {
      accept_one(std::move(socket));
    } else {
      refuse(std::move(socket));
    }
  }
}

void ClientServer::accept_one(Fd socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    BRAID_LOG_WARN("a client was dropped: {}", Status::from_errno(errno, "SO_PEERCRED").message());
    return;
  }
  const uint64_t id = next_id_++;
  const ClientCredentials credentials{peer.pid, peer.uid, peer.gid};
  std::unique_ptr<ClientConnection> connection(
      new ClientConnection(*this, id, std::move(socket), credentials));
  ++counters_.connections_accepted;
  if (const Status status = connection->start(); !status) {
    BRAID_LOG_WARN("process {} was dropped: {}", credentials.pid, status.message());
    return;
  }
  connections_.emplace(id, std::move(connection));
}

// Tells why, as far as a socket that nobody waits for takes it.
void ClientServer::refuse(Fd socket) {
  ++counters_.connections_refused;
  const std::string error = fmt::format("braidd on node '{}' has {} connections already, its limit",
                                        options_.node_name, options_.connections_max);
  if (may_log()) BRAID_LOG_WARN("clients are refused: {}", error);
  flatbuffers::FlatBufferBuilder builder;
  build_hello_reply(builder, options_, error);
  FrameWriter writer(builder.GetSize() + kFrameHeaderBytes);
  if (writer.push({builder.GetBufferPointer(), builder.GetSize()}, {}).is_ok()) {
    static_cast<void>(writer.flush(socket.get()));
  }
}

void ClientServer::pause_accepting(int error) {
  ++counters_.connections_refused;
  if (may_log()) {
    BRAID_LOG_WARN("clients must wait: {} (raise LimitNOFILE?)",
                   Status::from_errno(error, "cannot accept on the client socket").message());
  }
  listener_poll_->stop();
  resume_timer_.start_once(kAcceptPauseMs, [this] { resume_accepting(); });
}

void ClientServer::on_closed(ClientConnection& connection, Status reason) {
  loop_.defer([this, alive = alive_, id = connection.id(), reason = std::move(reason)] {
    if (!*alive) return;
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const std::unique_ptr<ClientConnection> closed = std::move(found->second);
    connections_.erase(found);
    if (closed->was_connected_) {
      handler_.on_client_closed(*closed, reason);
    } else if (may_log()) {
      BRAID_LOG_WARN("a client was dropped: {}", reason.message());
    }
  });
}

bool ClientServer::may_log() {
  const uint64_t now_ms = uv_now(loop_.uv());
  if (now_ms < next_log_ms_) return false;
  next_log_ms_ = now_ms + kRefusalLogPeriodMs;
  return true;
}

ClientServerCounters ClientServer::counters() const {
  ClientServerCounters counters = counters_;
  counters.connections_open = connections_.size();
  return counters;
}

void ClientServer::build_hello_reply(flatbuffers::FlatBufferBuilder& builder,
                                     const ClientServerOptions& options, const std::string& error) {
  const auto reply = proto::CreateHelloReplyDirect(
      builder, proto::kClientProtocolVersion, options.daemon_version.c_str(),
      options.node_name.c_str(), error.empty() ? nullptr : error.c_str());
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::HelloReply, reply.Union()));
}

}  // namespace braid
