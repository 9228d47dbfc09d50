// SPDX-License-Identifier: Apache-2.0
#include "connection.h"

#include <algorithm>
#include <cerrno>
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

uint64_t now_ns() { return SystemClock().now_ns(); }

int milliseconds_until(uint64_t deadline_ns) {
  const uint64_t now = now_ns();
  if (now >= deadline_ns) return 0;
  constexpr uint64_t kLongestMs = 3'600'000;
  return static_cast<int>(std::min((deadline_ns - now + 999'999) / 1'000'000, kLongestMs));
}

Error Connection::open(const std::string& path, uint64_t deadline_ns) {
  path_ = path;
  deadline_ns = std::min(deadline_ns, now_ns() + kHandshakeTimeoutNs);
  if (Error error = connect(deadline_ns); !error) return error;
  if (Error error = check_daemon_user(socket_.get(), path_); !error) return error;
  return shake_hands(deadline_ns);
}

Error Connection::connect(uint64_t deadline_ns) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.empty() || path_.size() >= sizeof(address.sun_path)) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "the socket's path '", path_, "' has ",
                      path_.size(), " bytes; 1 to ", sizeof(address.sun_path) - 1, " are possible");
  }
  std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  socket_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.is_valid()) return from_ipc(IpcError::from_errno(errno, "cannot make a socket"));
  while (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
         0) {
    // EAGAIN: many are connecting, the daemon has not come round to us. Unix sockets give no event
    // for that.
    if ((errno != EAGAIN && errno != EINTR) || now_ns() >= deadline_ns)
      return explain_connect_error(errno);
    ::usleep(kBacklogPauseUs);
  }
  return {};
}

Error Connection::explain_connect_error(int error) const {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return make_error(
          BRAID_ERROR_UNAVAILABLE, "no braidd on this node: there is no socket '", path_,
          "' (start it with 'systemctl start braidd' or 'braidd', or set BRAID_SOCKET to its "
          "client.socket)");
    case ECONNREFUSED:
      return make_error(
          BRAID_ERROR_UNAVAILABLE, "no braidd on this node: nobody listens on the socket '", path_,
          "' (start it with 'systemctl start braidd' or 'braidd', or set BRAID_SOCKET to its "
          "client.socket)");
    case EACCES:
    case EPERM: {
      const std::string group = group_of(path_);
      if (group.empty()) {
        return make_error(BRAID_ERROR_PERMISSION_DENIED,
                          "this user may not look into the directory of braidd's socket '", path_,
                          "'");
      }
      return make_error(BRAID_ERROR_PERMISSION_DENIED, "this user may not open braidd's socket '",
                        path_, "': it is for members of the group '", group, "' (usermod -aG ",
                        group, " USER)");
    }
    case EAGAIN:
      return make_error(BRAID_ERROR_DEADLINE_EXCEEDED, "braidd at '", path_,
                        "' does not answer: it did not accept the connection in time");
    default:
      return make_error(BRAID_ERROR_UNAVAILABLE, "cannot connect to braidd at '", path_,
                        "': ", IpcError::from_errno(error, "connect").message);
  }
}

Error Connection::shake_hands(uint64_t deadline_ns) {
  flatbuffers::FlatBufferBuilder builder;
  const auto hello = proto::CreateHelloDirect(builder, proto::kClientProtocolVersion, BRAID_VERSION,
                                              process_name().c_str());
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::Hello, hello.Union()));
  Error sent = send(builder);  // a daemon that refuses us may have said why before it closed
  Received received;
  Error error = receive_until(deadline_ns, received);
  if (error.code == BRAID_ERROR_DEADLINE_EXCEEDED) {
    return make_error(error.code, "braidd at '", path_,
                      "' does not answer: no reply to Hello in time");
  }
  if (!error) return sent.is_ok() ? error : sent;
  const proto::HelloReply* reply = received.message->body_as_HelloReply();
  if (reply == nullptr) {
    return make_error(BRAID_ERROR_PROTOCOL, "whoever listens on '", path_, "' answered Hello with ",
                      proto::EnumNameClientBody(received.message->body_type()));
  }
  if (reply->protocol_version() != proto::kClientProtocolVersion) {
    const bool daemon_is_older = reply->protocol_version() < proto::kClientProtocolVersion;
    return make_error(BRAID_ERROR_PROTOCOL, "client speaks protocol ",
                      proto::kClientProtocolVersion, " (libbraid ", BRAID_VERSION, "), daemon ",
                      reply->protocol_version(), " (braidd ", reply->daemon_version()->str(),
                      "): upgrade ", daemon_is_older ? "braidd" : "libbraid", " on node '",
                      reply->node_name()->str(), "'");
  }
  if (reply->error() != nullptr && reply->error()->size() > 0) {
    return make_error(BRAID_ERROR_UNAVAILABLE, reply->error()->str());
  }
  frame_bytes_max_ = kFrameBytesMax;
  return {};
}

Error Connection::gone(const std::string& how) const {
  return make_error(BRAID_ERROR_UNAVAILABLE, "braidd at '", path_, "' went away: ", how);
}

Error Connection::send(flatbuffers::FlatBufferBuilder& message, std::span<const int> fds) {
  const IpcError error = writer_.push({message.GetBufferPointer(), message.GetSize()}, fds);
  if (!error.is_ok()) return from_ipc(error);
  return flush();
}

Error Connection::flush() {
  const IpcError error = writer_.flush(socket_.get());
  return error.is_ok() ? Error{} : gone(error.message);
}

Error Connection::receive(Received& received) {
  switch (reader_.read(socket_.get(), frame_bytes_max_)) {
    case FrameReader::Outcome::WouldBlock:
      return {};
    case FrameReader::Outcome::EndOfStream:
      return gone("it closed the connection");
    case FrameReader::Outcome::Error:
      if (reader_.error().cause == EPROTO) {
        return make_error(BRAID_ERROR_PROTOCOL, "braidd at '", path_, "' sent ",
                          reader_.error().message);
      }
      return gone(reader_.error().message);
    case FrameReader::Outcome::Frame:
      break;
  }
  received.frame = reader_.take();
  flatbuffers::Verifier verifier(received.frame.bytes.data(), received.frame.bytes.size());
  if (!proto::VerifyClientMessageBuffer(verifier) ||
      proto::GetClientMessage(received.frame.bytes.data())->body() == nullptr) {
    return make_error(BRAID_ERROR_PROTOCOL, "braidd at '", path_,
                      "' sent bytes that are no message");
  }
  received.message = proto::GetClientMessage(received.frame.bytes.data());
  return {};
}

Error Connection::receive_until(uint64_t deadline_ns, Received& received) {
  while (true) {
    if (Error error = receive(received); !error || received.message != nullptr) return error;
    const int timeout_ms = milliseconds_until(deadline_ns);
    if (timeout_ms == 0)
      return make_error(BRAID_ERROR_DEADLINE_EXCEEDED, "braidd at '", path_, "' does not answer");
    pollfd poll{socket_.get(), static_cast<short>(POLLIN | (has_unsent() ? POLLOUT : 0)), 0};
    ::poll(&poll, 1, timeout_ms);
    if ((poll.revents & POLLOUT) == 0) continue;
    if (const Error unsent = flush(); !unsent) {
      // A daemon that closed on us may have said why.
      Error error = receive(received);
      return error.is_ok() && received.message == nullptr ? unsent : error;
    }
  }
}

}  // namespace braid::client
