// SPDX-License-Identifier: Apache-2.0
#include "loop/socket_address.h"

#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <uv.h>

namespace braid {
namespace {

const sockaddr_in& as_v4(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in&>(storage);
}
const sockaddr_in6& as_v6(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in6&>(storage);
}

}  // namespace

std::optional<SocketAddress> SocketAddress::parse(const std::string& numeric, uint16_t port) {
  SocketAddress address;
  if (uv_ip4_addr(numeric.c_str(), port, reinterpret_cast<sockaddr_in*>(&address.storage_)) == 0) {
    return address;
  }
  if (uv_ip6_addr(numeric.c_str(), port, reinterpret_cast<sockaddr_in6*>(&address.storage_)) == 0) {
    address.unmap();
    return address;
  }
  return std::nullopt;
}

std::optional<SocketAddress> SocketAddress::from(const sockaddr* source) {
  SocketAddress address;
  if (source->sa_family == AF_INET) {
    std::memcpy(&address.storage_, source, sizeof(sockaddr_in));
  } else if (source->sa_family == AF_INET6) {
    std::memcpy(&address.storage_, source, sizeof(sockaddr_in6));
    address.unmap();
  } else {
    return std::nullopt;
  }
  return address;
}

void SocketAddress::unmap() {
  const sockaddr_in6 v6 = as_v6(storage_);
  if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = v6.sin6_port;
  std::memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + 12, sizeof(v4.sin_addr));
  storage_ = {};
  std::memcpy(&storage_, &v4, sizeof(v4));
}

SocketAddress SocketAddress::with_port(uint16_t port) const {
  SocketAddress other = *this;
  // Both families have it in the same place.
  reinterpret_cast<sockaddr_in&>(other.storage_).sin_port = htons(port);
  return other;
}

uint16_t SocketAddress::port() const {
  return ntohs(storage_.ss_family == AF_INET ? as_v4(storage_).sin_port
                                             : as_v6(storage_).sin6_port);
}

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (storage_.ss_family == AF_INET) {
    uv_ip4_name(&as_v4(storage_), text, sizeof(text));
  } else {
    uv_ip6_name(&as_v6(storage_), text, sizeof(text));
  }
  return text;
}

std::string SocketAddress::to_string() const { return host_and_port(host(), port()); }

bool SocketAddress::is_loopback() const {
  if (storage_.ss_family == AF_INET) return ntohl(as_v4(storage_).sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&as_v6(storage_).sin6_addr);
}

bool SocketAddress::is_any() const {
  if (storage_.ss_family == AF_INET) return as_v4(storage_).sin_addr.s_addr == INADDR_ANY;
  return IN6_IS_ADDR_UNSPECIFIED(&as_v6(storage_).sin6_addr);
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  if (storage_.ss_family != other.storage_.ss_family || port() != other.port()) return false;
  if (storage_.ss_family == AF_INET) {
    return as_v4(storage_).sin_addr.s_addr == as_v4(other.storage_).sin_addr.s_addr;
  }
  return as_v6(storage_).sin6_scope_id == as_v6(other.storage_).sin6_scope_id &&
         std::memcmp(&as_v6(storage_).sin6_addr, &as_v6(other.storage_).sin6_addr,
                     sizeof(in6_addr)) == 0;
}

std::string host_and_port(const std::string& host, uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace braid
