// SPDX-License-Identifier: Apache-2.0
#include "base/inet6_addresses.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <sstream>
#include <tuple>

#include <linux/if_addr.h>

#include "base/read_file.h"

namespace braid {
namespace {

constexpr const char* kInet6File = "/proc/net/if_inet6";
constexpr size_t kInet6FileBytesMax = 4u << 20;
constexpr uint32_t kPassing = IFA_F_TEMPORARY | IFA_F_DEPRECATED | IFA_F_TENTATIVE;

std::optional<in6_addr> read_hexadecimal(const std::string& text) {
  in6_addr address{};
  if (text.size() != 2 * sizeof(address)) return std::nullopt;
  for (size_t i = 0; i < sizeof(address); ++i) {
    const char* begin = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(begin, begin + 2, address.s6_addr[i], 16);
    if (error != std::errc() || end != begin + 2) return std::nullopt;
  }
  return address;
}

}  // namespace

std::vector<Inet6Address> parse_inet6_addresses(std::string_view if_inet6) {
  struct Line {
    Inet6Address address;
    bool is_passing = false;
  };
  std::vector<Line> found;
  std::istringstream lines{std::string(if_inet6)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string text, device;
    uint32_t number = 0, prefix = 0, scope = 0, flags = 0;
    if (!(fields >> text >> std::hex >> number >> prefix >> scope >> flags >> device)) continue;
    const auto ip = read_hexadecimal(text);
    if (!ip || (flags & IFA_F_DADFAILED) != 0) continue;
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = *ip;
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) v6.sin6_scope_id = number;
    const auto address = SocketAddress::from(reinterpret_cast<const sockaddr*>(&v6));
    found.push_back({{device, *address}, (flags & kPassing) != 0});
  }
  std::ranges::stable_sort(found, {}, [](const Line& one) {
    return std::make_tuple(one.address.address.is_link_local(), one.is_passing);
  });
  std::vector<Inet6Address> addresses;
  addresses.reserve(found.size());
  for (Line& one : found) addresses.push_back(std::move(one.address));
  return addresses;
}

std::vector<Inet6Address> inet6_addresses() {
  const auto text = read_file(kInet6File, kInet6FileBytesMax);  // none: a kernel without IPv6
  return text ? parse_inet6_addresses(*text) : std::vector<Inet6Address>();
}

std::vector<SocketAddress> inet6_addresses_of(const std::string& device) {
  std::vector<SocketAddress> addresses;
  for (const Inet6Address& one : inet6_addresses()) {
    if (one.device == device) addresses.push_back(one.address);
  }
  return addresses;
}

}  // namespace braid
