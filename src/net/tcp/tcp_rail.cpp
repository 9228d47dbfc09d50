// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/tcp_rail.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/log.h"

namespace braid {
namespace {

bool is_v6(const SocketAddress& address) { return address.get()->sa_family == AF_INET6; }

bool is_link_local(const SocketAddress& address) {
  if (!is_v6(address)) return false;
  return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
}

socklen_t length_of(const SocketAddress& address) {
  return is_v6(address) ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

}  // namespace

Result<Fd> TcpRail::socket_to(const SocketAddress& address) const {
  Fd socket(::socket(address.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_valid()) return Status::from_errno(errno, "cannot make a socket for a flow");
  const auto own = std::find_if(addresses.begin(), addresses.end(), [&](const auto& one) {
    return is_v6(one) == is_v6(address) && is_link_local(one) == is_link_local(address);
  });
  if (own == addresses.end()) return socket;  // the kernel chooses
  // The port is chosen with the way, so that one port serves several ways.
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
  if (::bind(socket.get(), own->get(), length_of(*own)) != 0)
    return Status::from_errno(errno, "cannot send from " + own->host());
  // Two rails in one subnet have one route. Kernels before 5.7 let only root say so: then the route
  // decides.
  if (is_one_of_several && !address.is_loopback() &&
      ::setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, name.data(),
                   static_cast<socklen_t>(name.size())) != 0) {
    BRAID_LOG_DEBUG(LogFields{.rail = name}, "rail {}: routes decide which flows take it", name);
  }
  return socket;
}

Result<TcpRail> find_tcp_rail(const std::string& name, const std::string& node_address) {
  ifaddrs* entries = nullptr;
  if (::getifaddrs(&entries) != 0) return Status::from_errno(errno, "cannot list the interfaces");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(entries, ::freeifaddrs);
  TcpRail rail{name, {}, false};
  std::set<std::string> names;
  for (const ifaddrs* entry = entries; entry != nullptr; entry = entry->ifa_next) {
    names.insert(entry->ifa_name);
    if (entry->ifa_name != name || entry->ifa_addr == nullptr) continue;
    if (const auto address = SocketAddress::from(entry->ifa_addr))
      rail.addresses.push_back(*address);
  }
  if (!names.contains(name)) {
    return make_status(StatusCode::NotFound,
                       "rail {}: there is no such network device; there are: {}", name,
                       fmt::join(names, ", "));
  }
  if (rail.addresses.empty())
    return make_status(StatusCode::Unavailable, "rail {} has no IP address", name);
  const auto node = SocketAddress::parse(node_address, 0);
  const bool prefers_v6 = node && is_v6(*node);
  std::ranges::stable_sort(rail.addresses, {}, [&](const SocketAddress& one) {
    const bool is_node = node && one.host() == node->host();
    return std::make_tuple(!is_node, is_v6(one) != prefers_v6, is_link_local(one));
  });
  return rail;
}

}  // namespace braid
