// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/flow_address.h"

#include <cstring>

#include <net/if.h>

namespace braid {
namespace {

constexpr size_t kBeforeAddress = 3;  // the family's byte and the port

template <typename Address>
std::vector<uint8_t> put_together(uint8_t family, uint16_t port, const Address& address) {
  std::vector<uint8_t> bytes{family, static_cast<uint8_t>(port >> 8), static_cast<uint8_t>(port)};
  const auto* begin = reinterpret_cast<const uint8_t*>(&address);
  bytes.insert(bytes.end(), begin, begin + sizeof(address));
  return bytes;
}

}  // namespace

std::vector<uint8_t> flow_address(const SocketAddress& address) {
  if (address.is_v6()) {
    const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(address.get());
    return put_together(6, address.port(), v6.sin6_addr);
  }
  const auto& v4 = *reinterpret_cast<const sockaddr_in*>(address.get());
  return put_together(4, address.port(), v4.sin_addr);
}

std::optional<SocketAddress> read_flow_address(std::span<const uint8_t> bytes,
                                               const std::string& rail) {
  if (bytes.size() < kBeforeAddress) return std::nullopt;
  const auto port = static_cast<uint16_t>(bytes[1] << 8 | bytes[2]);
  const auto ip = bytes.subspan(kBeforeAddress);
  if (bytes[0] == 4 && ip.size() == sizeof(in_addr)) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, ip.data(), ip.size());
    return SocketAddress::from(reinterpret_cast<const sockaddr*>(&v4));
  }
  if (bytes[0] == 6 && ip.size() == sizeof(in6_addr)) {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&v6.sin6_addr, ip.data(), ip.size());
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) v6.sin6_scope_id = ::if_nametoindex(rail.c_str());
    return SocketAddress::from(reinterpret_cast<const sockaddr*>(&v6));
  }
  return std::nullopt;
}

}  // namespace braid
