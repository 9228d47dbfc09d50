// SPDX-License-Identifier: Apache-2.0
#include "connection.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon_user.h"
#include "proto/version.h"

namespace braid::client {
namespace {

constexpr const char* kDefaultSocketPath = "/run/braid/braidd.sock";
constexpr uint64_t kHandshakeTimeoutNs = 10'000'000'000;
constexpr useconds_t kBacklogPauseUs = 10'000;

std::string process_name() {
  char name[64] = {};
  const Fd file(::open("/proc/self/comm", O_RDONLY | O_CLOEXEC));
  const ssize_t length = file.is_valid() ? ::read(file.get(), name, sizeof(name) - 1) : 0;
  std::string result(name, length > 0 ? static_cast<size_t>(length) : 0);
  if (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

std::string group_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  ::group entry{};
  ::group* found = nullptr;
  std::vector<char> buffer(64 * 1024);
  ::getgrgid_r(info.st_gid, &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? found->gr_name : std::to_string(info.st_gid);
}

}  // namespace

std::string socket_path_of(const char* given) {
  if (given != nullptr) return given;
  const char* from_environment = std::getenv("BRAID_SOCKET");
  return from_environment != nullptr && *from_environment != '\0' ? from_environment
                                                                  : kDefaultSocketPath;
}

uint64_t now_ns() { return SystemClock().now_ns(); }

int milliseconds_until(uint64_t deadline_ns) {
  const uint64_t now = now_ns();
  if (now >= deadline_ns) return 0;
  constexpr uint64_t kLongestMs = 3'600'000;
  return static_cast<int>(std::min((deadline_ns - now + 999'999) / 1'000'000, kLongestMs));
}

Status Connection::open(const std::string& path, uint64_t deadline_ns) {
  BRAID_RETURN_IF_ERROR(begin(path, deadline_ns));
  bool is_open = false;
  return advance(open_deadline_ns_, is_open);
}

Status Connection::begin(const std::string& path, uint64_t deadline_ns) {
  path_ = path;
  open_deadline_ns_ = std::min(deadline_ns, now_ns() + kHandshakeTimeoutNs);
  if (path_.empty() || path_.size() >= sizeof(sockaddr_un::sun_path)) {
    return make_status(StatusCode::InvalidArgument,
                       "the socket's path '{}' has {} bytes; 1 to {} are possible", path_,
                       path_.size(), sizeof(sockaddr_un::sun_path) - 1);
  }
  socket_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.is_valid()) return Status::from_errno(errno, "cannot make a socket");
  return {};
}

Status Connection::advance(uint64_t until_ns, bool& is_open) {
  is_open = false;
  if (stage_ == Stage::Connecting) {
    bool is_connected = false;
    BRAID_RETURN_IF_ERROR(connect(until_ns, is_connected));
    if (!is_connected) return {};
    BRAID_RETURN_IF_ERROR(check_daemon_user(socket_.get(), path_));
    greet();
  }
  if (stage_ == Stage::Greeted) BRAID_RETURN_IF_ERROR(await_reply(until_ns));
  is_open = stage_ == Stage::Open;
  return {};
}

Status Connection::connect(uint64_t until_ns, bool& is_connected) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  while (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
         0) {
    // EAGAIN: many are connecting, the daemon has not come round to us. Unix sockets give no event
    // for that.
    const int error = errno;
    const uint64_t now = now_ns();
    if ((error != EAGAIN && error != EINTR) || now >= open_deadline_ns_)
      return explain_connect_error(error);
    if (now >= until_ns) return {};
    ::usleep(kBacklogPauseUs);
  }
  is_connected = true;
  return {};
}

Status Connection::explain_connect_error(int error) const {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return make_status(
          StatusCode::Unavailable,
          "no braidd on this node: there is no socket '{}' (start it with 'systemctl start braidd' "
          "or 'braidd', or set BRAID_SOCKET to its client.socket)",
          path_);
    case ECONNREFUSED:
      return make_status(
          StatusCode::Unavailable,
          "no braidd on this node: nobody listens on the socket '{}' (start it with 'systemctl "
          "start braidd' or 'braidd', or set BRAID_SOCKET to its client.socket)",
          path_);
    case EACCES:
    case EPERM: {
      const std::string group = group_of(path_);
      if (group.empty()) {
        return make_status(StatusCode::PermissionDenied,
                           "this user may not look into the directory of braidd's socket '{}'",
                           path_);
      }
      return make_status(StatusCode::PermissionDenied,
                         "this user may not open braidd's socket '{}': it is for members of the "
                         "group '{}' (usermod -aG {} USER)",
                         path_, group, group);
    }
    case EAGAIN:
      return make_status(StatusCode::DeadlineExceeded,
                         "braidd at '{}' does not answer: it did not accept the connection in time",
                         path_);
    default:
      return make_status(StatusCode::Unavailable, "cannot connect to braidd at '{}': {}", path_,
                         Status::from_errno(error, "connect").message());
  }
}

void Connection::greet() {
  flatbuffers::FlatBufferBuilder builder;
  const auto hello = proto::CreateHelloDirect(builder, proto::kClientProtocolVersion, BRAID_VERSION,
                                              process_name().c_str());
  greeted_ = send(builder, hello);
  stage_ = Stage::Greeted;
}

Status Connection::await_reply(uint64_t until_ns) {
  Received received;
  Status answered = receive_until(std::min(until_ns, open_deadline_ns_), received);
  if (answered.code() == StatusCode::DeadlineExceeded) {
    if (now_ns() < open_deadline_ns_) return {};
    return make_status(answered.code(), "braidd at '{}' does not answer: no reply to Hello in time",
                       path_);
  }
  if (!answered) return greeted_.is_ok() ? answered : greeted_;
  BRAID_RETURN_IF_ERROR(take_reply(*received.message));
  frame_bytes_max_ = kFrameBytesMax;
  stage_ = Stage::Open;
  return {};
}

Status Connection::take_reply(const proto::ClientMessage& message) {
  const proto::HelloReply* reply = message.body_as_HelloReply();
  if (reply == nullptr) {
    return make_status(StatusCode::Protocol,
                       "the program that listens on '{}' answered Hello with {}", path_,
                       proto::EnumNameClientBody(message.body_type()));
  }
  if (reply->protocol_version() != proto::kClientProtocolVersion) {
    const bool daemon_is_older = reply->protocol_version() < proto::kClientProtocolVersion;
    return make_status(
        StatusCode::Protocol,
        "client speaks protocol {} (libbraid {}), daemon {} (braidd {}): upgrade {} on node '{}'",
        proto::kClientProtocolVersion, BRAID_VERSION, reply->protocol_version(),
        reply->daemon_version()->str(), daemon_is_older ? "braidd" : "libbraid",
        reply->node_name()->str());
  }
  if (reply->error() != nullptr && reply->error()->size() > 0) {
    return Status(StatusCode::Unavailable, reply->error()->str());
  }
  if (reply->address() != nullptr) daemon_address_ = reply->address()->str();
  daemon_node_ = reply->node();
  return {};
}

pid_t Connection::daemon_process() const {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return ::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : 0;
}

Status Connection::gone(const std::string& how) const {
  return make_status(StatusCode::Unavailable, "braidd at '{}' went away: {}", path_, how);
}

Status Connection::send(const flatbuffers::FlatBufferBuilder& message, std::span<const int> fds) {
  BRAID_RETURN_IF_ERROR(writer_.push({message.GetBufferPointer(), message.GetSize()}, fds));
  return flush();
}

Status Connection::flush() {
  const Status flushed = writer_.flush(socket_.get());
  return flushed ? flushed : gone(flushed.message());
}

Status Connection::receive(Received& received) {
  switch (reader_.read(socket_.get(), frame_bytes_max_)) {
    case FrameReader::Outcome::WouldBlock:
      return {};
    case FrameReader::Outcome::EndOfStream:
      return gone("it closed the connection");
    case FrameReader::Outcome::Error:
      if (reader_.error().code() == StatusCode::Protocol) {
        return make_status(StatusCode::Protocol, "braidd at '{}' sent {}", path_,
                           reader_.error().message());
      }
      // The daemon is well: this process has no descriptors left for what it sent.
      if (reader_.error().code() == StatusCode::ResourceExhausted) return reader_.error();
      return gone(reader_.error().message());
    case FrameReader::Outcome::Frame:
      break;
  }
  received.frame = reader_.take();
  flatbuffers::Verifier verifier(received.frame.bytes.data(), received.frame.bytes.size());
  if (!proto::VerifyClientMessageBuffer(verifier) ||
      proto::GetClientMessage(received.frame.bytes.data())->body() == nullptr) {
    return make_status(StatusCode::Protocol, "braidd at '{}' sent bytes that are no message",
                       path_);
  }
  const proto::ClientMessage* message = proto::GetClientMessage(received.frame.bytes.data());
  if (!received.frame.fds.empty() && message->body_type() != proto::ClientBody::JobOpened) {
    return make_status(StatusCode::Protocol,
                       "braidd at '{}' sent {} descriptors with {}, to which none belong", path_,
                       received.frame.fds.size(), proto::EnumNameClientBody(message->body_type()));
  }
  received.message = message;
  return {};
}

Status Connection::receive_until(uint64_t deadline_ns, Received& received) {
  while (true) {
    if (Status status = receive(received); !status || received.message != nullptr) return status;
    const int timeout_ms = milliseconds_until(deadline_ns);
    if (timeout_ms == 0)
      return make_status(StatusCode::DeadlineExceeded, "braidd at '{}' does not answer", path_);
    pollfd poll{socket_.get(), static_cast<short>(POLLIN | (has_unsent() ? POLLOUT : 0)), 0};
    ::poll(&poll, 1, timeout_ms);
    if ((poll.revents & POLLOUT) == 0) continue;
    if (const Status unsent = flush(); !unsent) {
      // A daemon that closed on us may have said why.
      Status status = receive(received);
      return status.is_ok() && received.message == nullptr ? unsent : status;
    }
  }
}

}  // namespace braid::client
