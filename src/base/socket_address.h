// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/status.h"

namespace braid {

// An IPv4 or IPv6 address with a port; a value. IPv4 addresses that came mapped into IPv6 are IPv4
// here.
class SocketAddress {
 public:
  // "10.0.0.1", "2001:db8::1", or "fe80::1%eth0": numeric only, so nothing is looked up but the
  // device's number. Nothing: see address_fault(), or this host has no such device.
  static std::optional<SocketAddress> parse(const std::string& numeric, uint16_t port);
  // Nothing if it is of another family.
  static std::optional<SocketAddress> from(const sockaddr* address);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t bytes() const;  // of what get() points to
  uint16_t port() const;
  SocketAddress with_port(uint16_t port) const;
  std::string host() const;       // numeric; with its device if it is link-local: "fe80::1%eth0"
  std::string to_string() const;  // "10.0.0.1:7410", "[::1]:7410"
  bool is_v6() const { return storage_.ss_family == AF_INET6; }
  bool is_loopback() const;
  bool is_any() const;         // 0.0.0.0, ::
  bool is_link_local() const;  // fe80::/10: it means something only together with a device

  bool operator==(const SocketAddress& other) const;

 private:
  SocketAddress() = default;
  void unmap();

  sockaddr_storage storage_{};
};

// Why a text is not the numeric address of an interface, and what would be right, as the rest of a
// sentence that begins with the text: "is no IPv4 or IPv6 address; use …". Empty: it is one.
// Whether this host has the device of a link-local address is not looked at.
std::string address_fault(const std::string& text);

// "host:port", with brackets around an IPv6 address.
std::string host_and_port(const std::string& host, uint16_t port);

struct HostPort {
  std::string host;   // a name, or an address without brackets
  uint16_t port = 0;  // 0: none is given
};

// "node-7", "node-7:7410", "192.0.2.7:7410", "2001:db8::7", "[2001:db8::7]:7410" or
// "[fe80::7%eth0]:7410". The error says what is wrong with the text, as address_fault() does.
Result<HostPort> parse_host_port(const std::string& text);

}  // namespace braid
