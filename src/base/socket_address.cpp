// SPDX-License-Identifier: Apache-2.0
#include "base/socket_address.h"

#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include <arpa/inet.h>
#include <net/if.h>

namespace braid {
namespace {

const sockaddr_in& as_v4(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in&>(storage);
}
const sockaddr_in6& as_v6(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in6&>(storage);
}

bool is_v4_text(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1;
}

// "fe80::1%eth0": the address and its device; empty: none is named.
struct V6Text {
  in6_addr address{};
  std::string device;
};

std::optional<V6Text> read_v6(const std::string& text) {
  V6Text read;
  const size_t percent = text.find('%');
  if (percent != std::string::npos) {
    read.device = text.substr(percent + 1);
    const bool is_name = !read.device.empty() && read.device.size() < IF_NAMESIZE &&
                         read.device.find_first_of(":/% \t\n") == std::string::npos;
    if (!is_name) return std::nullopt;
  }
  if (::inet_pton(AF_INET6, text.substr(0, percent).c_str(), &read.address) != 1)
    return std::nullopt;
  return read;
}

uint32_t number_of_device(const std::string& device) {
  if (const uint32_t number = ::if_nametoindex(device.c_str()); number != 0) return number;
  uint32_t number = 0;
  const char* end = device.data() + device.size();
  const auto [rest, error] = std::from_chars(device.data(), end, number);
  return error == std::errc() && rest == end ? number : 0;
}

std::string with_device(const std::string& address) {
  return fmt::format("{}%eth0, with the name of its device (ip -6 address shows it)", address);
}

// The number behind the last colon, if that is one.
std::optional<uint16_t> read_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

// What was meant, where a port or brackets stand around it; empty: it is not known.
std::string address_within(const std::string& text) {
  const auto inner = parse_host_port(text);
  if (inner && inner->host != text && address_fault(inner->host).empty()) return inner->host;
  return {};
}

}  // namespace

std::optional<SocketAddress> SocketAddress::parse(const std::string& numeric, uint16_t port) {
  SocketAddress address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage_);
  if (::inet_pton(AF_INET, numeric.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    return address;
  }
  address.storage_ = {};
  const auto read = read_v6(numeric);
  if (!read) return std::nullopt;
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage_);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = read->address;
  if (address.is_link_local() == read->device.empty()) return std::nullopt;
  if (!read->device.empty()) {
    v6.sin6_scope_id = number_of_device(read->device);
    if (v6.sin6_scope_id == 0) return std::nullopt;
  }
  address.unmap();
  return address;
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

socklen_t SocketAddress::bytes() const {
  return is_v6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

uint16_t SocketAddress::port() const {
  return ntohs(is_v6() ? as_v6(storage_).sin6_port : as_v4(storage_).sin_port);
}

std::string SocketAddress::host() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (!is_v6()) {
    ::inet_ntop(AF_INET, &as_v4(storage_).sin_addr, text.data(), text.size());
    return text.data();
  }
  ::inet_ntop(AF_INET6, &as_v6(storage_).sin6_addr, text.data(), text.size());
  const uint32_t number = as_v6(storage_).sin6_scope_id;
  if (!is_link_local() || number == 0) return text.data();
  std::array<char, IF_NAMESIZE> device{};
  if (::if_indextoname(number, device.data()) == nullptr)
    return fmt::format("{}%{}", text.data(), number);
  return fmt::format("{}%{}", text.data(), device.data());
}

std::string SocketAddress::to_string() const { return host_and_port(host(), port()); }

bool SocketAddress::is_loopback() const {
  if (!is_v6()) return ntohl(as_v4(storage_).sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&as_v6(storage_).sin6_addr);
}

bool SocketAddress::is_any() const {
  if (!is_v6()) return as_v4(storage_).sin_addr.s_addr == INADDR_ANY;
  return IN6_IS_ADDR_UNSPECIFIED(&as_v6(storage_).sin6_addr);
}

bool SocketAddress::is_link_local() const {
  return is_v6() && IN6_IS_ADDR_LINKLOCAL(&as_v6(storage_).sin6_addr);
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  if (storage_.ss_family != other.storage_.ss_family || port() != other.port()) return false;
  if (!is_v6()) return as_v4(storage_).sin_addr.s_addr == as_v4(other.storage_).sin_addr.s_addr;
  return as_v6(storage_).sin6_scope_id == as_v6(other.storage_).sin6_scope_id &&
         std::memcmp(&as_v6(storage_).sin6_addr, &as_v6(other.storage_).sin6_addr,
                     sizeof(in6_addr)) == 0;
}

std::string address_fault(const std::string& text) {
  if (is_v4_text(text)) return {};
  const auto v6 = read_v6(text);
  if (!v6) {
    if (const std::string meant = address_within(text); !meant.empty()) {
      const bool has_port = !text.ends_with(']');
      return fmt::format("has {}, and an address alone is wanted here; use {}",
                         has_port ? "a port" : "brackets", meant);
    }
    return "is neither an IPv4 nor an IPv6 address; use one such as 192.0.2.7 or 2001:db8::7";
  }
  const bool is_link_local = IN6_IS_ADDR_LINKLOCAL(&v6->address);
  if (is_link_local && v6->device.empty()) {
    return "is a link-local address, which leads nowhere without its device; use " +
           with_device(text);
  }
  if (!is_link_local && !v6->device.empty()) {
    return "names a device, which only a link-local address (fe80::) needs; use " +
           text.substr(0, text.find('%'));
  }
  return {};
}

std::string host_and_port(const std::string& host, uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<HostPort> parse_host_port(const std::string& text) {
  const auto wrong = [](std::string why) {
    return Status(StatusCode::InvalidArgument, std::move(why));
  };
  const auto no_node = [&] {
    return wrong(
        "is no node; right is such as node-7, node-7:7410, 192.0.2.7:7410 or [2001:db8::7]:7410");
  };
  HostPort parsed;
  std::string_view port;
  const size_t colon = text.rfind(':');
  const size_t bracket = text.rfind(']');
  const bool has_brackets = text.starts_with('[');
  if (has_brackets) {
    if (bracket == std::string::npos) return no_node();
    parsed.host = text.substr(1, bracket - 1);
    if (!read_v6(parsed.host)) return no_node();
    port = std::string_view(text).substr(bracket + 1);
  } else if (colon == std::string::npos || text.find(':') != colon) {
    parsed.host = text;  // a name, or an IPv6 address without a port
  } else {
    parsed.host = text.substr(0, colon);
    port = std::string_view(text).substr(colon);
  }
  if (!port.empty()) {
    const auto number = port.front() == ':' ? read_port(port.substr(1)) : std::nullopt;
    if (!number) return no_node();
    parsed.port = *number;
  }
  if (parsed.host.empty() || parsed.host.find_first_of(" /@") != std::string::npos)
    return no_node();
  if (parsed.host.find(':') == std::string::npos) return parsed;
  const auto v6 = read_v6(parsed.host);
  if (!v6) {
    const std::string before = text.substr(0, colon);
    if (!has_brackets && read_v6(before) && read_port(text.substr(colon + 1)))
      return wrong("has a port behind an IPv6 address; use [" + before + "]" + text.substr(colon));
    return no_node();
  }
  if (std::string fault = address_fault(parsed.host); !fault.empty()) {
    if (has_brackets || !IN6_IS_ADDR_LINKLOCAL(&v6->address)) return wrong(std::move(fault));
    return wrong(std::move(fault) + ", and with a port such as [fe80::7%eth0]:7410");
  }
  return parsed;
}

}  // namespace braid
