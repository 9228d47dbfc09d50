// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/flow_listener.h"

#include <cerrno>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/log.h"

namespace braid {
namespace {

// So long the kernel keeps a connection to itself that says nothing.
constexpr int kSilentGreetingSeconds = 10;
constexpr int kBacklog = 1024;
constexpr int kAcceptedAtOnce = 32;
constexpr uint64_t kPauseMs = 100;

std::optional<SocketAddress> bound_address(int socket) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
    return std::nullopt;
  return SocketAddress::from(reinterpret_cast<const sockaddr*>(&address));
}

}  // namespace

Result<Fd> FlowListener::listen(const SocketAddress& address) {
  Fd socket(::socket(address.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket.is_valid()) return Status::from_errno(errno, "cannot make a socket for flows");
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &kSilentGreetingSeconds,
               sizeof(kSilentGreetingSeconds));
  if (::bind(socket.get(), address.get(), address.bytes()) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return Status::from_errno(
        errno, fmt::format("cannot listen for flows at {} (transport.port)", address.to_string()));
  }
  return socket;
}

Result<std::unique_ptr<FlowListener>> FlowListener::create(Loop& loop, Fd listening,
                                                           std::string rail,
                                                           std::atomic<uint64_t>& strangers) {
  const auto address = bound_address(listening.get());
  if (!address) return Status::from_errno(errno, "a listening socket has no address");
  std::unique_ptr<FlowListener> listener(
      new FlowListener(loop, std::move(listening), *address, std::move(rail), strangers));
  BRAID_RETURN_IF_ERROR(listener->watch());
  return listener;
}

FlowListener::FlowListener(Loop& loop, Fd listening, SocketAddress address, std::string rail,
                           std::atomic<uint64_t>& strangers)
    : loop_(loop),
      listening_(std::move(listening)),
      address_(address),
      rail_(std::move(rail)),
      strangers_(strangers),
      pause_timer_(loop) {}

Status FlowListener::watch() {
  auto poll = Poll::create(loop_, listening_.get());
  if (!poll) return poll.status();
  poll_ = std::move(*poll);
  poll_->start(UV_READABLE, [this](int) { accept_some(); });
  return Status::ok();
}

void FlowListener::expect(uint64_t token, const Sha256Digest& proof_key, Take take) {
  expected_.insert_or_assign(token, Expected{proof_key, std::move(take)});
}

void FlowListener::accept_some() {
  for (int accepted = 0; accepted < kAcceptedAtOnce; ++accepted) {
    sockaddr_storage peer{};
    socklen_t bytes = sizeof(peer);
    Fd connection(::accept4(listening_.get(), reinterpret_cast<sockaddr*>(&peer), &bytes,
                            SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!connection.is_valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) pause();
      return;
    }
    const auto from = SocketAddress::from(reinterpret_cast<const sockaddr*>(&peer));
    greet(std::move(connection), from ? &*from : nullptr);
  }
}

// No descriptor or no memory is free: the connections wait in the kernel.
void FlowListener::pause() {
  poll_->stop();
  pause_timer_.start_once(kPauseMs,
                          [this] { poll_->start(UV_READABLE, [this](int) { accept_some(); }); });
}

void FlowListener::greet(Fd connection, const SocketAddress* from) {
  Take take;
  if (has_greeted(connection.get(), take)) return take(std::move(connection));
  if (strangers_.fetch_add(1, std::memory_order_relaxed) != 0) return;
  BRAID_LOG_WARN(
      "rail {}: refused a connection from {} to the port of the flows, for it comes from no daemon "
      "that this one opens flows with; more are only counted",
      rail_, from != nullptr ? from->to_string() : "an unknown address");
}

bool FlowListener::has_greeted(int connection, Take& take) {
  FlowGreeting greeting{};
  if (::recv(connection, &greeting, sizeof(greeting), MSG_DONTWAIT) !=
          static_cast<ssize_t>(sizeof(greeting)) ||
      greeting.magic != FlowGreeting::kMagic || greeting.version != FlowGreeting::kVersion)
    return false;
  const auto found = expected_.find(greeting.token);
  if (found == expected_.end()) return false;
  const Sha256Digest key = found->second.proof_key;
  if (!equal_in_constant_time(greeting.proof,
                              flow_proof(key, FlowProofOf::Connecting, address_.port())))
    return false;
  // A proof that was heard lets no other connection in.
  take = std::move(found->second.take);
  expected_.erase(found);
  const auto answer = flow_proof(key, FlowProofOf::Listening, address_.port());
  return ::send(connection, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(answer.size());
}

}  // namespace braid
