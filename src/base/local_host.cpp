// SPDX-License-Identifier: Apache-2.0
#include "base/local_host.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/inet6_addresses.h"
#include "base/socket_address.h"

namespace braid {
namespace {

std::string own_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

// Asks the kernel's routing table whether what is sent there stays on this host. A list of all
// interfaces would tell, too, but takes a lock that is held for tens of milliseconds while a
// network namespace is made or removed.
bool is_own_address(sa_family_t family, const void* address, uint16_t bytes) {
  struct {
    nlmsghdr header{};
    rtmsg route{};
    rtattr attribute{};
    std::array<uint8_t, sizeof(in6_addr)> address{};
  } request;
  request.attribute = {static_cast<uint16_t>(RTA_LENGTH(bytes)), RTA_DST};
  std::memcpy(request.address.data(), address, bytes);
  request.route.rtm_family = static_cast<uint8_t>(family);
  request.route.rtm_dst_len = static_cast<uint8_t>(bytes * 8);
  request.header.nlmsg_len = static_cast<uint32_t>(NLMSG_LENGTH(sizeof(rtmsg)) + RTA_LENGTH(bytes));
  request.header.nlmsg_type = RTM_GETROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST;

  const Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (::send(socket.get(), &request, request.header.nlmsg_len, 0) < 0) return false;
  // The answer is there when send() has returned.
  alignas(nlmsghdr) std::array<uint8_t, 4096> answer{};
  const ssize_t received = ::recv(socket.get(), answer.data(), answer.size(), 0);
  if (received < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(rtmsg)))) return false;
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (header->nlmsg_type != RTM_NEWROUTE) return false;  // no route: an error
  return static_cast<const rtmsg*>(NLMSG_DATA(header))->rtm_type == RTN_LOCAL;
}

struct DeviceAddress {
  std::string device;
  unsigned flags = 0;
  SocketAddress address;

  bool leads_out() const { return (flags & (IFF_UP | IFF_LOOPBACK)) == IFF_UP; }
};

// Device by device, in the kernel's order; IPv4 first.
std::vector<DeviceAddress> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::vector<DeviceAddress> own;
  std::map<std::string, unsigned> flags;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    flags[entry->ifa_name] = entry->ifa_flags;
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    if (const auto address = SocketAddress::from(entry->ifa_addr))
      own.push_back({entry->ifa_name, entry->ifa_flags, address->with_port(0)});
  }
  for (const Inet6Address& one : inet6_addresses())
    own.push_back({one.device, flags[one.device], one.address});
  return own;
}

}  // namespace

bool is_loopback_host(const std::string& host) {
  if (host == "localhost") return true;
  const auto address = SocketAddress::parse(host, 0);
  return address && address->is_loopback();
}

bool is_local_host(const std::string& host) {
  const std::string name = own_name();
  if (!name.empty() && (host == name || host.starts_with(name + "."))) return true;
  const auto address = SocketAddress::parse(host, 0);
  if (!address) return false;
  // Every device has a route to all link-local addresses.
  if (address->is_link_local()) return !own_interface_of(host).empty();
  if (address->is_v6()) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6*>(address->get())->sin6_addr;
    return is_own_address(AF_INET6, &v6, sizeof(v6));
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in*>(address->get())->sin_addr;
  return is_own_address(AF_INET, &v4, sizeof(v4));
}

std::string own_interface_of(const std::string& address) {
  const auto wanted = SocketAddress::parse(address, 0);
  if (!wanted) return {};
  const auto own = own_addresses();
  const auto found = std::ranges::find(own, *wanted, &DeviceAddress::address);
  return found == own.end() ? std::string() : found->device;
}

bool has_own_address(bool is_v6) {
  if (!is_v6) {
    return std::ranges::any_of(own_addresses(), [](const DeviceAddress& one) {
      return one.leads_out() && !one.address.is_v6();
    });
  }
  return std::ranges::any_of(inet6_addresses(), [](const Inet6Address& one) {
    return !one.address.is_loopback() && !one.address.is_link_local();
  });
}

std::string own_interfaces() {
  constexpr size_t kNamedMax = 8;
  std::vector<std::string> named;
  size_t count = 0;
  const auto own = own_addresses();
  for (auto one = own.begin(); one != own.end(); ++one) {
    const auto is_same = [&](const DeviceAddress& other) { return other.device == one->device; };
    if (!one->leads_out() || std::any_of(own.begin(), one, is_same)) continue;
    if (++count > kNamedMax) continue;
    std::vector<std::string> texts;
    for (const DeviceAddress& other : own) {
      const bool is_told = texts.empty() || !other.address.is_link_local();
      if (is_same(other) && is_told) texts.push_back(other.address.host());
    }
    named.push_back(fmt::format("{} ({})", one->device, fmt::join(texts, ", ")));
  }
  if (named.empty()) return "no interface with an IP address";
  const std::string more = count > kNamedMax ? fmt::format(" and {} more", count - kNamedMax) : "";
  return fmt::format("{}{}", fmt::join(named, ", "), more);
}

std::string own_end_towards(const std::string& address) {
  const auto remote = SocketAddress::parse(address, 9);  // any port: nothing is sent
  if (!remote) return {};
  const Fd socket(::socket(remote->get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage bound{};
  socklen_t bytes = sizeof(bound);
  if (::connect(socket.get(), remote->get(), remote->bytes()) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &bytes) != 0)
    return {};
  const auto own = SocketAddress::from(reinterpret_cast<const sockaddr*>(&bound));
  if (!own || own->is_loopback() || own->with_port(0) == remote->with_port(0)) return {};
  const std::string interface = own_interface_of(own->host());
  return own->host() + (interface.empty() ? "" : " (" + interface + ")");
}

}  // namespace braid
