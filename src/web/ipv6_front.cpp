// SPDX-License-Identifier: Apache-2.0
#include "web/ipv6_front.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "base/clock.h"

namespace braid {
namespace {

constexpr const char* kServerHost = "127.0.0.1";
constexpr int kFrontBacklog = 128;
constexpr size_t kFrontBufferBytes = 64 << 10;
constexpr int kPauseMs = 100;
constexpr int kLookEveryMs = 1000;
constexpr uint64_t kDrainMs = 2000;

std::optional<SocketAddress> end_of_socket(int socket, int (*name)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  if (name(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return std::nullopt;
  return SocketAddress::from(reinterpret_cast<const sockaddr*>(&address));
}

TcpEnd as_end(const SocketAddress& address) { return {address.host(), address.port()}; }

}  // namespace

// Bytes on their way from one socket to another.
class Ipv6Front::Stretch {
 public:
  // False: a side has gone.
  bool move(int from, int to) {
    if (sent_ == filled_ && !is_at_end_) {
      const ssize_t got = ::recv(from, bytes_.data(), bytes_.size(), MSG_DONTWAIT);
      if (got < 0 && errno != EAGAIN && errno != EINTR) return false;
      sent_ = 0;
      filled_ = got > 0 ? static_cast<size_t>(got) : 0;
      is_at_end_ = got == 0;
    }
    if (sent_ < filled_) {
      const ssize_t sent =
          ::send(to, bytes_.data() + sent_, filled_ - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (sent > 0) sent_ += static_cast<size_t>(sent);
    }
    if (is_at_end_ && sent_ == filled_ && !std::exchange(is_end_told_, true))
      ::shutdown(to, SHUT_WR);
    return true;
  }
  bool wants_to_read() const { return sent_ == filled_ && !is_at_end_; }
  bool wants_to_write() const { return sent_ < filled_; }
  bool is_over() const { return is_end_told_; }

 private:
  std::array<char, kFrontBufferBytes> bytes_;
  size_t sent_ = 0;
  size_t filled_ = 0;
  bool is_at_end_ = false;
  bool is_end_told_ = false;
};

struct Ipv6Front::Connection {
  // False: it is over.
  bool go_on() {
    if (SystemClock().now_ms() >= until_ms) return false;
    if (answer.is_over()) return drain();
    // The server may answer what it does not read to its end.
    is_heard = is_heard && request.move(outer.get(), inner.get());
    if (!answer.move(inner.get(), outer.get())) return false;
    if (answer.is_over()) until_ms = std::min(until_ms, SystemClock().now_ms() + kDrainMs);
    return true;
  }
  // Bytes that nobody has read when a socket is closed would cost the client the answer.
  bool drain() const {
    std::array<char, 4096> rest;
    const ssize_t got = ::recv(outer.get(), rest.data(), rest.size(), MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  }
  pollfd look_at_outer() const {
    const bool wants_to_read = answer.is_over() || (is_heard && request.wants_to_read());
    return look_at(outer, wants_to_read, answer.wants_to_write());
  }
  pollfd look_at_inner() const {
    return look_at(inner, answer.wants_to_read(), is_heard && request.wants_to_write());
  }
  // A socket that nothing is wanted of may have ended, and would be reported without a pause.
  static pollfd look_at(const Fd& socket, bool wants_to_read, bool wants_to_write) {
    const int events = (wants_to_read ? POLLIN : 0) | (wants_to_write ? POLLOUT : 0);
    return {events == 0 ? -1 : socket.get(), static_cast<short>(events), 0};
  }

  Fd outer;
  Fd inner;
  uint16_t inner_port = 0;
  uint64_t until_ms = 0;
  bool is_heard = true;
  Stretch request;
  Stretch answer;
};

Result<std::unique_ptr<Ipv6Front>> Ipv6Front::create(const SocketAddress& address,
                                                     uint16_t server_port) {
  Fd listening(::socket(address.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  const int off = 0;
  ::setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  ::setsockopt(listening.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (::bind(listening.get(), address.get(), address.bytes()) != 0 ||
      ::listen(listening.get(), kFrontBacklog) != 0)
    return Status::from_errno(errno, "cannot listen");
  const auto bound = end_of_socket(listening.get(), ::getsockname);
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bound || !wake.is_valid()) return Status::from_errno(errno, "cannot listen");
  std::unique_ptr<Ipv6Front> front(
      new Ipv6Front(std::move(listening), bound->port(), server_port, std::move(wake)));
  sigset_t all, before;
  ::sigfillset(&all);  // signals are for the loops' threads
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Status started = Status::ok();
  try {
    front->thread_ = std::thread([front = front.get()] { front->run(); });
  } catch (const std::system_error& error) {
    started = Status(StatusCode::Unavailable, error.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) return started;
  return front;
}

Ipv6Front::Ipv6Front(Fd listening, uint16_t port, uint16_t server_port, Fd wake)
    : listening_(std::move(listening)),
      port_(port),
      server_port_(server_port),
      wake_(std::move(wake)) {}

Ipv6Front::~Ipv6Front() { stop(); }

void Ipv6Front::stop() {
  ::eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
  connections_.clear();
}

std::optional<Ipv6Front::Ends> Ipv6Front::ends_of(const TcpEnd& inner) const {
  MutexLock lock(mutex_);
  const auto found = ends_.find(inner.port);
  if (found == ends_.end() || inner.address != kServerHost) return std::nullopt;
  return found->second;
}

void Ipv6Front::run() {
  std::vector<pollfd> polled;
  while (true) {
    const bool takes_more = !is_paused_ && connections_.size() < kConnectionsMax;
    polled.assign({{wake_.get(), POLLIN, 0},
                   {listening_.get(), static_cast<short>(takes_more ? POLLIN : 0), 0}});
    for (const auto& one : connections_) {
      polled.push_back(one->look_at_outer());
      polled.push_back(one->look_at_inner());
    }
    const int timeout_ms = is_paused_ ? kPauseMs : connections_.empty() ? -1 : kLookEveryMs;
    ::poll(polled.data(), polled.size(), timeout_ms);
    is_paused_ = false;
    if (polled[0].revents != 0) return;
    std::erase_if(connections_, [this](const auto& one) {
      if (one->go_on()) return false;
      forget(*one);
      return true;
    });
    if ((polled[1].revents & POLLIN) != 0) accept_some();
  }
}

void Ipv6Front::accept_some() {
  while (connections_.size() < kConnectionsMax) {
    Fd outer(::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!outer.is_valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      is_paused_ = errno != EAGAIN;
      return;
    }
    if (auto connection = hand_on(std::move(outer))) connections_.push_back(std::move(connection));
  }
}

// Nothing: it cannot be served, and is closed.
std::unique_ptr<Ipv6Front::Connection> Ipv6Front::hand_on(Fd outer) {
  const auto peer = end_of_socket(outer.get(), ::getpeername);
  const auto own = end_of_socket(outer.get(), ::getsockname);
  if (!peer || !own) return nullptr;
  auto connection = std::make_unique<Connection>();
  connection->outer = std::move(outer);
  connection->inner = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  connection->until_ms = SystemClock().now_ms() + kConnectionMs;
  const int inner = connection->inner.get();
  // The server must know whose request it is from its first byte on.
  const auto any_port = *SocketAddress::parse(kServerHost, 0);
  if (::bind(inner, any_port.get(), any_port.bytes()) != 0) return nullptr;
  const auto bound = end_of_socket(inner, ::getsockname);
  if (!bound) return nullptr;
  connection->inner_port = bound->port();
  {
    MutexLock lock(mutex_);
    ends_.insert_or_assign(connection->inner_port, Ends{as_end(*peer), as_end(*own)});
  }
  const auto server = any_port.with_port(server_port_);
  if (::connect(inner, server.get(), server.bytes()) != 0 && errno != EINPROGRESS) {
    forget(*connection);
    return nullptr;
  }
  return connection;
}

void Ipv6Front::forget(const Connection& connection) {
  MutexLock lock(mutex_);
  ends_.erase(connection.inner_port);
}

}  // namespace braid
