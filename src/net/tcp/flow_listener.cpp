// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/flow_listener.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/port_fault.h"
#include "base/random.h"

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

// All of it is there.
bool has_read(int socket, std::span<uint8_t> bytes) {
  return ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
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
    const int error = errno;
    return Status(Status::from_errno(error, "").code(),
                  port_fault("transport.port", address, error,
                             "another port; each further I/O thread takes the next one"),
                  error);
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

void FlowListener::expect(uint64_t token, const Sha256Digest& proof_key, bool is_encrypted,
                          Take take) {
  expected_.insert_or_assign(token, Expected{proof_key, is_encrypted, std::move(take)});
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
  FlowSalts salts;
  Take take;
  if (has_greeted(connection.get(), salts, take)) return take(std::move(connection), salts);
  if (strangers_.fetch_add(1, std::memory_order_relaxed) != 0) return;
  BRAID_LOG_WARN(
      "rail {}: refused a connection from {} to the port of the flows, for it comes from no daemon "
      "that this one opens flows with; more are only counted",
      rail_, from != nullptr ? from->to_string() : "an unknown address");
}

bool FlowListener::has_greeted(int connection, FlowSalts& salts, Take& take) {
  FlowGreeting greeting{};
  if (!has_read(connection, {reinterpret_cast<uint8_t*>(&greeting), sizeof(greeting)}) ||
      greeting.magic != FlowGreeting::kMagic)
    return false;
  const auto found = expected_.find(greeting.token);
  if (found == expected_.end()) return false;
  const bool is_encrypted = found->second.is_encrypted;
  const auto side = FlowProofOf::Connecting;
  if (greeting.version != (is_encrypted ? FlowGreeting::kEncrypted : FlowGreeting::kVersion) ||
      (is_encrypted && !has_read(connection, salts.own(side))))
    return false;
  const auto said = is_encrypted ? salts.known_to(side) : std::span<const uint8_t>();
  if (!equal_in_constant_time(greeting.proof,
                              flow_proof(found->second.proof_key, side, address_.port(), said)))
    return false;
  // A proof that was heard lets no other connection in.
  Expected expected = std::move(found->second);
  expected_.erase(found);
  take = std::move(expected.take);
  return answer(connection, expected, salts);
}

bool FlowListener::answer(int connection, const Expected& expected, FlowSalts& salts) const {
  const auto side = FlowProofOf::Listening;
  std::array<uint8_t, kFlowProofBytes + FlowSalts::kBytes> bytes{};
  size_t count = kFlowProofBytes;
  std::span<const uint8_t> said;
  if (expected.is_encrypted) {
    fill_random(salts.own(side));
    std::ranges::copy(salts.own(side), bytes.begin() + kFlowProofBytes);
    count += FlowSalts::kBytes;
    said = salts.known_to(side);
  }
  std::ranges::copy(flow_proof(expected.proof_key, side, address_.port(), said), bytes.begin());
  return ::send(connection, bytes.data(), count, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(count);
}

}  // namespace braid
