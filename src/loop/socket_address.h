// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <netinet/in.h>
#include <sys/socket.h>

namespace braid {

// An IPv4 or IPv6 address with a port; a value. IPv4 addresses that came mapped into IPv6 are IPv4
// here.
class SocketAddress {
 public:
  // "10.0.0.1" or "fe80::1%eth0": numeric only, so nothing is looked up.
  static std::optional<SocketAddress> parse(const std::string& numeric, uint16_t port);
  // Nothing if it is of another family.
  static std::optional<SocketAddress> from(const sockaddr* address);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  uint16_t port() const;
  SocketAddress with_port(uint16_t port) const;
  std::string host() const;       // numeric
  std::string to_string() const;  // "10.0.0.1:7410", "[::1]:7410"
  bool is_loopback() const;
  bool is_any() const;  // 0.0.0.0, ::

  bool operator==(const SocketAddress& other) const;

 private:
  SocketAddress() = default;
  void unmap();

  sockaddr_storage storage_{};
};

// "host:port", with brackets around an IPv6 address.
std::string host_and_port(const std::string& host, uint16_t port);

}  // namespace braid
