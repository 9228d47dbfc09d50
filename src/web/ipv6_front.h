// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/socket_address.h"
#include "web/local_user.h"

namespace braid {

// Listens at an IPv6 address for the HTTP server, which knows IPv4 alone (civetweb, as Debian
// builds it): hands each connection's bytes on to a port of 127.0.0.1, and its answer back. At "::"
// it takes IPv4 as well. Has a thread of its own, which does nothing while nobody asks.
class Ipv6Front {
 public:
  static constexpr size_t kConnectionsMax = 64;  // further ones wait in the kernel
  // For all that a connection may take: one request and its answer.
  static constexpr uint32_t kConnectionMs = 60'000;

  struct Ends {
    TcpEnd peer;
    TcpEnd own;
  };

  // `server_port`: the HTTP server's, on 127.0.0.1.
  static Result<std::unique_ptr<Ipv6Front>> create(const SocketAddress& address,
                                                   uint16_t server_port);
  Ipv6Front(const Ipv6Front&) = delete;
  Ipv6Front& operator=(const Ipv6Front&) = delete;
  ~Ipv6Front();

  // Nobody is listened to any more, and all connections are closed. ends_of() goes on answering.
  void stop();
  uint16_t port() const { return port_; }
  // Whose request comes to the HTTP server from this end. Nothing: it came past this front. Any
  // thread.
  std::optional<Ends> ends_of(const TcpEnd& inner) const;

 private:
  class Stretch;
  struct Connection;
  Ipv6Front(Fd listening, uint16_t port, uint16_t server_port, Fd wake);
  void run();
  void accept_some();
  std::unique_ptr<Connection> hand_on(Fd outer);
  void forget(const Connection& connection);

  const Fd listening_;
  const uint16_t port_;
  const uint16_t server_port_;
  const Fd wake_;           // an eventfd: readable once it ends
  bool is_paused_ = false;  // there are no descriptors
  std::vector<std::unique_ptr<Connection>> connections_;
  mutable Mutex mutex_;
  std::unordered_map<uint16_t, Ends> ends_ BRAID_GUARDED_BY(mutex_);  // by our port to the server
  std::thread thread_;
};

}  // namespace braid
