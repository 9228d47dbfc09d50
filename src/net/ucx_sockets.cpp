// SPDX-License-Identifier: Apache-2.0
#include "net/ucx_sockets.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <dlfcn.h>
#include <linux/filter.h>

#include "base/log.h"

namespace braid {
namespace {

// A libc function behind the one of that name here.
template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
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

std::optional<SocketAddress> local_address(int socket) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return {};
  return SocketAddress::from(reinterpret_cast<const sockaddr*>(&address));
}

// The interface that a link-local address belongs to has another number on each node.
bool is_same_source(const SocketAddress& a, const SocketAddress& b) {
  return a.port() == b.port() && a.host() == b.host();
}

void drop_all(int listening_socket) {
  sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &drop};
  if (::setsockopt(listening_socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) !=
      0) {
    // Who connects is still not let in.
    BRAID_LOG_DEBUG("a port of UCX can be seen by strangers: {}", std::strerror(errno));
  }
}

void drop_nothing(int listening_socket) {
  const int ignored = 0;
  ::setsockopt(listening_socket, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof(ignored));
}

struct Waiting {
  int listener;
  SocketAddress source;
  Fd connection;
};

}  // namespace

// What is known of all listening sockets of UCX in this process.
struct UcxSockets {
  enum class State : uint8_t { Shut, Open, Awaiting };
  struct Listener {
    UcxListeners* owner;
    State state = State::Shut;
    std::vector<SocketAddress> sources;  // Awaiting: that have not come yet
  };

  static UcxSockets& all() {
    static auto* const sockets = new UcxSockets;  // UCX's threads may outlive main()
    return *sockets;
  }

  static int listen(int socket, int backlog) {
    if (collecting == nullptr || !local_address(socket)) return real_listen(socket, backlog);
    drop_all(socket);
    all().add(socket, *collecting);
    const int result = real_listen(socket, backlog);
    if (result != 0) {
      const int error = errno;
      all().remove(socket, *collecting);
      errno = error;
    }
    return result;
  }

  static int accept(int socket, sockaddr* address, socklen_t* bytes) {
    if (const auto taken = all().take(socket, address, bytes)) return *taken;
    return real_accept(socket, address, bytes);
  }

  static int connect(int socket, const sockaddr* address, socklen_t bytes) {
    const int result = real_connect(socket, address, bytes);
    if (noting == nullptr || (result != 0 && errno != EINPROGRESS)) return result;
    const int error = errno;
    if (const auto source = local_address(socket)) noting->sources_.push_back(*source);
    errno = error;
    return result;
  }

  void add(int socket, UcxListeners& owner) {
    const std::lock_guard lock(mutex);
    listeners[socket] = {&owner, State::Shut, {}};
    owner.sockets_.push_back(socket);
  }

  void remove(int socket, UcxListeners& owner) {
    const std::lock_guard lock(mutex);
    listeners.erase(socket);
    std::erase(owner.sockets_, socket);
  }

  // Nothing: the socket is none of UCX's.
  std::optional<int> take(int socket, sockaddr* address, socklen_t* bytes) {
    const std::lock_guard lock(mutex);
    const auto found = listeners.find(socket);
    if (found == listeners.end()) return {};
    Listener& listener = found->second;
    take_in(socket, listener);
    for (auto connection = waiting.begin(); connection != waiting.end(); ++connection) {
      if (connection->listener != socket || !is_awaited(listener, connection->source)) continue;
      std::erase_if(listener.sources, [&](const SocketAddress& source) {
        return is_same_source(source, connection->source);
      });
      const int fd = connection->connection.release();
      if (address != nullptr) ::getpeername(fd, address, bytes);
      waiting.erase(connection);
      if (listener.sources.empty()) shut(socket, listener);
      return fd;
    }
    errno = EAGAIN;
    return -1;
  }

  // Takes all that the kernel has.
  void take_in(int socket, const Listener& listener) {
    while (true) {
      sockaddr_storage address{};
      socklen_t bytes = sizeof(address);
      Fd connection(::accept4(socket, reinterpret_cast<sockaddr*>(&address), &bytes,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!connection.is_valid()) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        // No descriptor is free: those of strangers are the first to go.
        if ((errno != EMFILE && errno != ENFILE) || waiting.empty()) return;
        waiting.pop_front();
        continue;
      }
      const auto source = SocketAddress::from(reinterpret_cast<const sockaddr*>(&address));
      if (listener.state == State::Shut || !source) continue;
      if (waiting.size() >= kUcxConnectionsWaitingMax) waiting.pop_front();
      waiting.push_back({socket, *source, std::move(connection)});
    }
  }

  static bool is_awaited(const Listener& listener, const SocketAddress& source) {
    return std::any_of(
        listener.sources.begin(), listener.sources.end(),
        [&](const SocketAddress& awaited) { return is_same_source(awaited, source); });
  }

  void shut(int socket, Listener& listener) {
    listener.state = State::Shut;
    listener.sources.clear();
    drop_all(socket);
    std::erase_if(waiting,
                  [&](const Waiting& connection) { return connection.listener == socket; });
  }

  // Calls `action(socket, listener)` for those of `owner`.
  template <typename Action>
  void each_of(const UcxListeners& owner, const Action& action) {
    const std::lock_guard lock(mutex);
    for (const int socket : owner.sockets_) {
      const auto found = listeners.find(socket);
      if (found != listeners.end() && found->second.owner == &owner) action(socket, found->second);
    }
  }

  void open(const UcxListeners& owner) {
    each_of(owner, [](int socket, Listener& listener) {
      listener.state = State::Open;
      drop_nothing(socket);
    });
  }

  // The listening sockets at which an awaited connection is waiting.
  std::vector<int> admit(const UcxListeners& owner, const std::vector<SocketAddress>& sources) {
    std::vector<int> ready;
    each_of(owner, [&](int socket, Listener& listener) {
      if (listener.state != State::Open) return;
      if (sources.empty()) return shut(socket, listener);
      listener.state = State::Awaiting;
      listener.sources = sources;
      if (std::any_of(waiting.begin(), waiting.end(), [&](const Waiting& connection) {
            return connection.listener == socket && is_awaited(listener, connection.source);
          }))
        ready.push_back(socket);
    });
    return ready;
  }

  void shut_all(const UcxListeners& owner) {
    each_of(owner, [&](int socket, Listener& listener) { shut(socket, listener); });
  }

  void forget(const UcxListeners& owner) {
    each_of(owner, [&](int socket, Listener& listener) {
      shut(socket, listener);
      take_in(socket, listener);  // what came before the filter; UCX shall not find it
    });
    const std::lock_guard lock(mutex);
    std::erase_if(listeners, [&](const auto& entry) { return entry.second.owner == &owner; });
  }

  static thread_local UcxListeners* collecting;
  static thread_local UcxConnections* noting;

  std::mutex mutex;
  std::unordered_map<int, Listener> listeners;
  std::deque<Waiting> waiting;  // the oldest first
};

thread_local UcxListeners* UcxSockets::collecting = nullptr;
thread_local UcxConnections* UcxSockets::noting = nullptr;

namespace {

// UCX calls accept() when somebody connects. Now it shall call it for one that is waiting already:
// so somebody connects, and is a stranger like others. He has to stay until he was seen.
Fd knock(int listening_socket) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  ::getsockname(listening_socket, reinterpret_cast<sockaddr*>(&address), &bytes);
  Fd visitor(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (real_connect(visitor.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 &&
      errno != EINPROGRESS) {
    BRAID_LOG_WARN("this node cannot connect to a port of its own, as opening a flow takes: {}",
                   std::strerror(errno));
  }
  return visitor;
}

}  // namespace

UcxListeners::~UcxListeners() { UcxSockets::all().forget(*this); }

UcxListeners::Collect::Collect(UcxListeners& into) { UcxSockets::collecting = &into; }
UcxListeners::Collect::~Collect() { UcxSockets::collecting = nullptr; }

void UcxListeners::open() { UcxSockets::all().open(*this); }

void UcxListeners::admit(const std::vector<SocketAddress>& sources) {
  for (const int socket : UcxSockets::all().admit(*this, sources))
    visitors_.push_back(knock(socket));
}

void UcxListeners::shut() {
  UcxSockets::all().shut_all(*this);
  visitors_.clear();
}

UcxConnections::UcxConnections() { UcxSockets::noting = this; }
UcxConnections::~UcxConnections() { UcxSockets::noting = nullptr; }

}  // namespace braid

// The dynamic linker finds these before libc's, for all libraries of the process.
extern "C" {

[[gnu::visibility("default")]] int listen(int socket, int backlog) noexcept {
  return braid::UcxSockets::listen(socket, backlog);
}

[[gnu::visibility("default")]] int accept(int socket, sockaddr* __restrict address,
                                          socklen_t* __restrict bytes) {
  return braid::UcxSockets::accept(socket, address, bytes);
}

[[gnu::visibility("default")]] int connect(int socket, const sockaddr* address, socklen_t bytes) {
  return braid::UcxSockets::connect(socket, address, bytes);
}

}  // extern "C"
