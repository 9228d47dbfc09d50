// SPDX-License-Identifier: Apache-2.0
#include "config/network.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sstream>

#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/route.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/inet6_addresses.h"
#include "base/read_file.h"
#include "base/socket_address.h"

namespace braid {
namespace {

constexpr const char* kRouteFile = "/proc/net/route";
constexpr const char* kRouteFileV6 = "/proc/net/ipv6_route";
constexpr size_t kRouteFileBytesMax = 4u << 20;

struct FreeIfaddrs {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

bool is_internal(const std::string& name) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  ifreq request{};
  if (name.size() >= sizeof(request.ifr_name)) return false;
  std::memcpy(request.ifr_name, name.data(), name.size());
  request.ifr_data = reinterpret_cast<char*>(&info);
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_valid() || ::ioctl(socket.get(), SIOCETHTOOL, &request) != 0) return false;
  const std::string_view driver(info.driver, ::strnlen(info.driver, sizeof(info.driver)));
  return driver == "bridge" || driver == "dummy";
}

// getifaddrs has one entry per address, and one without an IP address for each interface.
void merge(const ifaddrs& entry, std::vector<NetworkInterface>& interfaces) {
  const auto found = std::find_if(interfaces.begin(), interfaces.end(),
                                  [&](const auto& one) { return one.name == entry.ifa_name; });
  NetworkInterface& interface =
      found != interfaces.end()
          ? *found
          : interfaces.emplace_back(NetworkInterface{.name = entry.ifa_name, .addresses = {}});
  interface.is_up = (entry.ifa_flags & IFF_UP) != 0;
  interface.has_carrier = (entry.ifa_flags & IFF_RUNNING) != 0;
  interface.is_loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  if (entry.ifa_addr == nullptr || entry.ifa_addr->sa_family != AF_INET) return;
  if (const auto address = SocketAddress::from(entry.ifa_addr))
    interface.addresses.push_back(address->host());
}

}  // namespace

std::optional<std::string> find_default_route(std::string_view proc_net_route) {
  std::istringstream lines{std::string(proc_net_route)};
  std::string line;
  std::optional<std::string> best;
  uint64_t best_metric = 0;
  while (std::getline(lines, line)) {
    // Iface Destination Gateway Flags RefCnt Use Metric Mask …; the heading fails to parse as
    // numbers.
    std::istringstream fields(line);
    std::string name;
    uint64_t destination = 0, gateway = 0, flags = 0, references = 0, uses = 0, metric = 0,
             mask = 0;
    if (!(fields >> name >> std::hex >> destination >> gateway >> flags >> std::dec >> references >>
          uses >> metric >> std::hex >> mask)) {
      continue;
    }
    const bool is_default = destination == 0 && mask == 0 && (flags & RTF_UP) != 0;
    if (is_default && (!best || metric < best_metric)) {
      best = name;
      best_metric = metric;
    }
  }
  return best;
}

std::optional<std::string> find_default_route_v6(std::string_view proc_net_ipv6_route) {
  std::istringstream lines{std::string(proc_net_ipv6_route)};
  std::optional<std::string> best;
  uint64_t best_metric = 0;
  for (std::string line; std::getline(lines, line);) {
    // Destination, its prefix, source, its prefix, next hop, metric, references, uses, flags,
    // device
    std::istringstream fields(line);
    std::string destination, source, gateway, name;
    uint64_t prefix = 0, source_prefix = 0, metric = 0, references = 0, uses = 0, flags = 0;
    if (!(fields >> destination >> std::hex >> prefix >> source >> source_prefix >> gateway >>
          metric >> references >> uses >> flags >> name)) {
      continue;
    }
    const bool leads_out = (flags & RTF_UP) != 0 && (flags & RTF_REJECT) == 0 && name != "lo";
    const bool is_default = prefix == 0 && source_prefix == 0 && leads_out;
    if (is_default && (!best || metric < best_metric)) {
      best = name;
      best_metric = metric;
    }
  }
  return best;
}

Result<Network> list_network() {
  Network network;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return Status::from_errno(errno, "cannot list network interfaces");
  const std::unique_ptr<ifaddrs, FreeIfaddrs> owner(list);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    merge(*entry, network.interfaces);
  }
  for (const Inet6Address& one : inet6_addresses()) {
    const auto found = std::ranges::find(network.interfaces, one.device, &NetworkInterface::name);
    if (found != network.interfaces.end()) found->addresses.push_back(one.address.host());
  }
  for (NetworkInterface& one : network.interfaces) one.is_internal = is_internal(one.name);
  // Without these files (a kernel without such routes) there is no default route; auto has other
  // choices then.
  if (const auto routes = read_file(kRouteFile, kRouteFileBytesMax))
    network.default_route = find_default_route(*routes).value_or("");
  if (!network.default_route.empty()) return network;
  if (const auto routes = read_file(kRouteFileV6, kRouteFileBytesMax))
    network.default_route = find_default_route_v6(*routes).value_or("");
  return network;
}

}  // namespace braid
