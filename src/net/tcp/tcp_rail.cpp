// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/tcp_rail.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/inet6_addresses.h"
#include "base/log.h"

namespace braid {
namespace {

const char* family_of(const SocketAddress& address) { return address.is_v6() ? "IPv6" : "IPv4"; }

}  // namespace

Result<Fd> TcpRail::socket_to(const SocketAddress& address) const {
  const auto is_alike = [&](const SocketAddress& one) { return one.is_v6() == address.is_v6(); };
  const auto is_near = [&](const SocketAddress& one) {
    return is_alike(one) && one.is_link_local() == address.is_link_local();
  };
  auto own = std::ranges::find_if(addresses, is_near);
  if (own == addresses.end()) own = std::ranges::find_if(addresses, is_alike);
  if (own == addresses.end()) {
    return make_status(StatusCode::Unavailable,
                       "rail {} has no {} address, and the other node's flows are at {}: give the "
                       "rail one, or set node.address of all nodes to addresses of one family",
                       name, family_of(address), address.host());
  }
  Fd socket(::socket(address.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_valid()) return Status::from_errno(errno, "cannot make a socket for a flow");
  // The port is chosen with the way, so that one port serves several ways.
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
  if (::bind(socket.get(), own->get(), own->bytes()) != 0)
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

void prefer_for_flows(std::vector<SocketAddress>& addresses, const std::string& node_address) {
  const auto node = SocketAddress::parse(node_address, 0);
  const bool prefers_v6 = node && node->is_v6();
  std::ranges::stable_sort(addresses, {}, [&](const SocketAddress& one) {
    const bool is_node = node && one == *node;
    return std::make_tuple(!is_node, one.is_v6() != prefers_v6, one.is_link_local());
  });
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
    if (entry->ifa_addr->sa_family != AF_INET) continue;
    if (const auto address = SocketAddress::from(entry->ifa_addr))
      rail.addresses.push_back(address->with_port(0));
  }
  std::ranges::copy(inet6_addresses_of(name), std::back_inserter(rail.addresses));
  if (!names.contains(name)) {
    return make_status(StatusCode::NotFound,
                       "rail {}: there is no such network device; there are: {}", name,
                       fmt::join(names, ", "));
  }
  if (rail.addresses.empty())
    return make_status(StatusCode::Unavailable, "rail {} has no IP address", name);
  prefer_for_flows(rail.addresses, node_address);
  return rail;
}

}  // namespace braid
