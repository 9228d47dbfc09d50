// SPDX-License-Identifier: Apache-2.0
#include "base/local_host.h"

#include <array>
#include <climits>
#include <cstdint>
#include <cstring>
#include <vector>

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

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

}  // namespace

bool is_loopback_host(const std::string& host) {
  if (host == "localhost" || host == "::1") return true;
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

bool is_local_host(const std::string& host) {
  const std::string name = own_name();
  if (!name.empty() && (host == name || host.starts_with(name + "."))) return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return is_own_address(AF_INET, &v4, sizeof(v4));
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && is_own_address(AF_INET6, &v6, sizeof(v6));
}

std::string own_interface_of(const std::string& address) {
  in_addr wanted{};
  ifaddrs* list = nullptr;
  if (::inet_pton(AF_INET, address.c_str(), &wanted) != 1 || ::getifaddrs(&list) != 0) return {};
  std::string name;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    const auto* own = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    if (own->sin_addr.s_addr == wanted.s_addr) name = entry->ifa_name;
  }
  ::freeifaddrs(list);
  return name;
}

std::string own_interfaces() {
  constexpr size_t kNamedMax = 8;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "interfaces that cannot be listed";
  std::vector<std::string> named;
  size_t count = 0;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    constexpr unsigned kFlags = IFF_UP | IFF_LOOPBACK;
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET ||
        (entry->ifa_flags & kFlags) != IFF_UP)
      continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* own = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    ::inet_ntop(AF_INET, &own->sin_addr, text.data(), text.size());
    if (++count <= kNamedMax) named.push_back(fmt::format("{} ({})", entry->ifa_name, text.data()));
  }
  ::freeifaddrs(list);
  if (named.empty()) return "no interface with an IPv4 address";
  const std::string more = count > kNamedMax ? fmt::format(" and {} more", count - kNamedMax) : "";
  return fmt::format("{}{}", fmt::join(named, ", "), more);
}

std::string own_end_towards(const std::string& address) {
  sockaddr_in remote{};
  remote.sin_family = AF_INET;
  remote.sin_port = htons(9);  // any: nothing is sent
  sockaddr_in own{};
  socklen_t bytes = sizeof(own);
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  std::array<char, INET_ADDRSTRLEN> text{};
  if (::inet_pton(AF_INET, address.c_str(), &remote.sin_addr) != 1 ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&remote), sizeof(remote)) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0 ||
      own.sin_addr.s_addr == remote.sin_addr.s_addr || (ntohl(own.sin_addr.s_addr) >> 24) == 127 ||
      ::inet_ntop(AF_INET, &own.sin_addr, text.data(), text.size()) == nullptr)
    return {};
  const std::string interface = own_interface_of(text.data());
  return text.data() + (interface.empty() ? "" : " (" + interface + ")");
}

}  // namespace braid
