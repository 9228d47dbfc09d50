// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_sockets.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/hmac.h"
#include "base/log.h"
#include "base/read_file.h"
#include "base/socket_address.h"
#include "loop/tcp_segments.h"
#include "loop/tcp_timers.h"

namespace braid {
namespace {

// So long the kernel keeps a connection to itself that says nothing.
constexpr int kSilentConnectionSeconds = 10;
// UCX takes ports of its range at random: after so many that were in use, none is likely to be
// free.
constexpr uint32_t kPortsTriedMax = 512;
constexpr const char* kLocalPortRangeFile = "/proc/sys/net/ipv4/ip_local_port_range";
constexpr const char* kUcxPortRange = "UCX_TCP_PORT_RANGE";

// A libc function behind the one of that name here.
template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int real_bind(int socket, const sockaddr* address, socklen_t bytes) {
  static auto* const function = next<int(int, const sockaddr*, socklen_t)>("bind");
  return function(socket, address, bytes);
}

int real_listen(int socket, int backlog) {
  static auto* const function = next<int(int, int)>("listen");
  return function(socket, backlog);
}

int real_accept(int socket, sockaddr* address, socklen_t* bytes) {
  static auto* const function = next<int(int, sockaddr*, socklen_t*)>("accept");
  return function(socket, address, bytes);
}

int real_connect(int socket, const sockaddr* address, socklen_t bytes) {
  static auto* const function = next<int(int, const sockaddr*, socklen_t)>("connect");
  return function(socket, address, bytes);
}

ssize_t real_send(int socket, const void* data, size_t bytes, int flags) {
  static auto* const function = next<ssize_t(int, const void*, size_t, int)>("send");
  return function(socket, data, bytes, flags);
}

ssize_t real_recv(int socket, void* data, size_t bytes, int flags) {
  static auto* const function = next<ssize_t(int, void*, size_t, int)>("recv");
  return function(socket, data, bytes, flags);
}

int real_ioctl(int descriptor, unsigned long request, void* argument) {
  static auto* const function = next<int(int, unsigned long, ...)>("ioctl");
  return function(descriptor, request, argument);
}

// Tells a socket from a later one that has its descriptor; 0 if the descriptor is no socket.
uint64_t cookie_of(int socket) {
  uint64_t cookie = 0;
  socklen_t bytes = sizeof(cookie);
  ::getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &bytes);
  return cookie;
}

std::optional<SocketAddress> local_address(int socket) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return {};
  return SocketAddress::from(reinterpret_cast<const sockaddr*>(&address));
}

void drop_all(int listening_socket) {
  sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &drop};
  if (::setsockopt(listening_socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) !=
      0) {
    BRAID_LOG_DEBUG("a port of UCX can still be seen: {}", std::strerror(errno));
  }
}

}  // namespace

// A connection that was begun, until both proofs have passed.
struct UcxSockets::Begun {
  int socket;
  uint64_t cookie;
  FlowProof proof;
  FlowProof answer;
  bool is_proof_sent = false;
  size_t answered = 0;  // bytes of the answer that have come
  FlowProof heard{};
};

// What is behind the functions of those names.
struct UcxCalls {
  using Begun = UcxSockets::Begun;

  struct Listener {
    UcxSockets* owner;
    uint64_t cookie;
    uint16_t port;
    bool is_taken = false;  // a connection was let in; a proof that was heard lets no other in
  };

  // UCX accepts on a thread of its own.
  struct Listeners {
    std::mutex mutex;
    std::unordered_map<int, Listener> by_socket;
  };
  static Listeners& all() {
    static auto* const listeners = new Listeners;  // UCX's thread may outlive main()
    return *listeners;
  }

  static int bind(int socket, const sockaddr* address, socklen_t bytes) {
    const int result = real_bind(socket, address, bytes);
    if (result == 0 || errno != EADDRINUSE || used == nullptr) return result;
    const auto wanted = SocketAddress::from(address);
    const bool is_any = wanted && wanted->port() == 0;  // the kernel has looked at all there are
    if (!is_any && ++used->ports_in_use_ < kPortsTriedMax) return result;
    used->are_ports_missing_ = true;
    errno = EADDRNOTAVAIL;
    return result;
  }

  static int listen(int socket, int backlog) {
    const auto address = used == nullptr ? std::nullopt : local_address(socket);
    if (!address) return real_listen(socket, backlog);
    ::setsockopt(socket, IPPROTO_TCP, TCP_DEFER_ACCEPT, &kSilentConnectionSeconds,
                 sizeof(kSilentConnectionSeconds));
    limit_tcp_segments(socket, used->segment_bytes_);
    const std::lock_guard lock(all().mutex);  // accept() waits for it
    const int result = real_listen(socket, backlog);
    if (result == 0) {
      all().by_socket.insert_or_assign(socket, Listener{used, cookie_of(socket), address->port()});
      used->listeners_.push_back({socket, cookie_of(socket), *address});
    }
    return result;
  }

  static int accept(int socket, sockaddr* address, socklen_t* bytes) {
    const std::lock_guard lock(all().mutex);
    const auto found = all().by_socket.find(socket);
    if (found == all().by_socket.end() || found->second.cookie != cookie_of(socket))
      return real_accept(socket, address, bytes);
    while (true) {
      sockaddr_storage peer{};
      socklen_t peer_bytes = sizeof(peer);
      Fd connection(::accept4(socket, reinterpret_cast<sockaddr*>(&peer), &peer_bytes,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!connection.is_valid()) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        // At any other error UCX would never accept again.
        if (errno != EBADF && errno != EINVAL) errno = EAGAIN;
        return -1;
      }
      Listener& listener = found->second;
      if (listener.owner->is_shut_) continue;
      if (listener.is_taken || !has_proved_itself(connection.get(), listener)) {
        refuse(*listener.owner, peer);
        continue;
      }
      listener.is_taken = true;
      shorten_tcp_timers(connection.get());
      if (address != nullptr) {
        std::memcpy(address, &peer, std::min(*bytes, peer_bytes));
        *bytes = peer_bytes;
      }
      return connection.release();
    }
  }

  // The proof is the first that was sent, so it has come as a whole, and its answer finds room.
  static bool has_proved_itself(int connection, const Listener& listener) {
    const Sha256Digest& key = listener.owner->proof_key_;
    FlowProof proof{};
    const auto expected = flow_proof(key, FlowProofOf::Connecting, listener.port);
    if (real_recv(connection, proof.data(), proof.size(), MSG_DONTWAIT) !=
            static_cast<ssize_t>(proof.size()) ||
        !equal_in_constant_time(proof, expected))
      return false;
    const auto answer = flow_proof(key, FlowProofOf::Listening, listener.port);
    return real_send(connection, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
           static_cast<ssize_t>(answer.size());
  }

  static void refuse(UcxSockets& owner, const sockaddr_storage& peer) {
    if (owner.strangers_.fetch_add(1, std::memory_order_relaxed) != 0) return;
    const auto from = SocketAddress::from(reinterpret_cast<const sockaddr*>(&peer));
    BRAID_LOG_WARN(
        "rail {}: refused a connection from {} to the port of a flow, for it comes from no daemon "
        "that this one opens flows with; more are only counted",
        owner.rail_, from ? from->to_string() : "an unknown address");
  }

  static int connect(int socket, const sockaddr* address, socklen_t bytes) {
    const auto to = used == nullptr ? std::nullopt : SocketAddress::from(address);
    if (to) limit_tcp_segments(socket, used->segment_bytes_);
    const int result = real_connect(socket, address, bytes);
    const int error = errno;
    if (used != nullptr && result != 0 && error == EADDRNOTAVAIL) used->are_ports_missing_ = true;
    if (!to || (result != 0 && error != EINPROGRESS)) return result;
    shorten_tcp_timers(socket);
    std::erase_if(used->begun_, [&](const Begun& other) { return other.socket == socket; });
    used->begun_.push_back({socket, cookie_of(socket),
                            flow_proof(used->proof_key_, FlowProofOf::Connecting, to->port()),
                            flow_proof(used->proof_key_, FlowProofOf::Listening, to->port())});
    errno = error;
    return result;
  }

  // Null: `socket` is nothing special, or it is no longer.
  static Begun* find_begun(int socket) {
    if (used == nullptr) return nullptr;
    auto& begun = used->begun_;
    const auto found = std::find_if(begun.begin(), begun.end(), [&](const Begun& connection) {
      return connection.socket == socket;
    });
    if (found == begun.end()) return nullptr;
    if (cookie_of(socket) == found->cookie) return &*found;
    begun.erase(found);
    return nullptr;
  }

  // `connection` is one of used->begun_.
  static void forget_if_proved(const Begun& connection) {
    if (connection.is_proof_sent && connection.answered == kFlowProofBytes)
      used->begun_.erase(used->begun_.begin() + (&connection - used->begun_.data()));
  }

  static ssize_t send(int socket, const void* data, size_t bytes, int flags) {
    const ssize_t sent = send_after_proof(socket, data, bytes, flags);
    if (sent < 0 && errno == EAGAIN && used != nullptr && used->is_ending_) errno = ECONNRESET;
    return sent;
  }

  static ssize_t send_after_proof(int socket, const void* data, size_t bytes, int flags) {
    Begun* connection = find_begun(socket);
    if (connection == nullptr || connection->is_proof_sent)
      return real_send(socket, data, bytes, flags);
    const FlowProof& proof = connection->proof;
    const ssize_t sent =
        real_send(socket, proof.data(), proof.size(), MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE);
    if (sent < 0) return sent;
    if (static_cast<size_t>(sent) < proof.size()) {  // never: nothing else was sent
      errno = ECONNABORTED;
      return -1;
    }
    connection->is_proof_sent = true;
    forget_if_proved(*connection);
    return real_send(socket, data, bytes, flags);
  }

  static ssize_t recv(int socket, void* data, size_t bytes, int flags) {
    Begun* connection = find_begun(socket);
    if (connection == nullptr || connection->answered == kFlowProofBytes)
      return real_recv(socket, data, bytes, flags);
    const ssize_t received = real_recv(socket, connection->heard.data() + connection->answered,
                                       kFlowProofBytes - connection->answered, MSG_DONTWAIT);
    if (received <= 0) return received;
    connection->answered += static_cast<size_t>(received);
    if (connection->answered < kFlowProofBytes) {
      errno = EAGAIN;
      return -1;
    }
    if (!equal_in_constant_time(connection->heard, connection->answer)) {
      connection->answered = 0;  // whatever comes next is no answer either
      BRAID_LOG_WARN("rail {}: who listens on a flow's port is not the daemon that it belongs to",
                     used->rail_);
      errno = ECONNRESET;
      return -1;
    }
    forget_if_proved(*connection);
    return real_recv(socket, data, bytes, flags);
  }

  static int ioctl(int descriptor, unsigned long request, void* argument) {
    if (used == nullptr || request != SIOCETHTOOL || argument == nullptr)
      return real_ioctl(descriptor, request, argument);
    return used->ethtool_.answer(descriptor, *static_cast<ifreq*>(argument), real_ioctl);
  }

  static thread_local UcxSockets* used;  // by this thread, now
};

thread_local UcxSockets* UcxCalls::used = nullptr;

UcxSockets::UcxSockets(const Sha256Digest& proof_key, std::string rail,
                       std::atomic<uint64_t>& strangers, int segment_bytes)
    : proof_key_(proof_key),
      rail_(std::move(rail)),
      strangers_(strangers),
      segment_bytes_(segment_bytes) {}

UcxSockets::~UcxSockets() {
  const std::lock_guard lock(UcxCalls::all().mutex);
  // A descriptor may be another worker's by now.
  std::erase_if(UcxCalls::all().by_socket,
                [&](const auto& listener) { return listener.second.owner == this; });
}

UcxSockets::Use::Use(UcxSockets& sockets) : outer_(std::exchange(UcxCalls::used, &sockets)) {}
UcxSockets::Use::~Use() { UcxCalls::used = outer_; }

std::optional<SocketAddress> UcxSockets::listening_at() const {
  if (listeners_.size() != 1) return std::nullopt;
  return listeners_.front().address;
}

std::string UcxSockets::missing_ports() const {
  if (!are_ports_missing_) return "";
  if (const char* range = std::getenv(kUcxPortRange); range != nullptr)
    return fmt::format("no port of {}={} is free: a flow takes one on each node", kUcxPortRange,
                       range);
  const auto local = read_file(kLocalPortRangeFile, 64);
  std::string range = local ? *local : "?";
  std::replace_if(
      range.begin(), range.end(), [](char c) { return c <= ' '; }, ' ');
  range.resize(range.find_last_not_of(' ') + 1);
  return fmt::format(
      "no TCP port is free: a flow takes one on each node and another for its connection, and "
      "net.ipv4.ip_local_port_range is {}",
      range);
}

// Without the lock: who accepts has it meanwhile, and this is said on a loop.
void UcxSockets::shut() {
  is_shut_ = true;
  for (const Listening& listening : listeners_) {
    if (cookie_of(listening.socket) == listening.cookie) drop_all(listening.socket);
  }
}

}  // namespace braid

// The dynamic linker finds these before libc's, for all libraries of the process.
extern "C" {

[[gnu::visibility("default")]] int bind(int socket, const sockaddr* address,
                                        socklen_t bytes) noexcept {
  return braid::UcxCalls::bind(socket, address, bytes);
}

[[gnu::visibility("default")]] int listen(int socket, int backlog) noexcept {
  return braid::UcxCalls::listen(socket, backlog);
}

[[gnu::visibility("default")]] int accept(int socket, sockaddr* __restrict address,
                                          socklen_t* __restrict bytes) {
  return braid::UcxCalls::accept(socket, address, bytes);
}

[[gnu::visibility("default")]] int connect(int socket, const sockaddr* address, socklen_t bytes) {
  return braid::UcxCalls::connect(socket, address, bytes);
}

[[gnu::visibility("default")]] ssize_t send(int socket, const void* data, size_t bytes, int flags) {
  return braid::UcxCalls::send(socket, data, bytes, flags);
}

[[gnu::visibility("default")]] ssize_t recv(int socket, void* data, size_t bytes, int flags) {
  return braid::UcxCalls::recv(socket, data, bytes, flags);
}

[[gnu::visibility("default")]] int ioctl(int descriptor, unsigned long request, ...) noexcept {
  va_list rest;
  va_start(rest, request);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return braid::UcxCalls::ioctl(descriptor, request, argument);
}

}  // extern "C"
