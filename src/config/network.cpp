// SPDX-License-Identifier: Apache-2.0
#include "config/network.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sstream>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/route.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/read_file.h"

namespace braid {
namespace {

constexpr const char* kRouteFile = "/proc/net/route";
constexpr size_t kRouteFileBytesMax = 4u << 20;

struct FreeIfaddrs {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

std::string numeric_address(const sockaddr* address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(address);
  return ::inet_ntop(AF_INET, &ipv4->sin_addr, text.data(), text.size()) != nullptr ? text.data()
                                                                                    : "";
}

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
          : interfaces.emplace_back(NetworkInterface{.name = entry.ifa_name, .address = {}});
  interface.is_up = (entry.ifa_flags & IFF_UP) != 0;
  interface.has_carrier = (entry.ifa_flags & IFF_RUNNING) != 0;
  interface.is_loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  const bool is_ipv4 = entry.ifa_addr != nullptr && entry.ifa_addr->sa_family == AF_INET;
  if (is_ipv4 && interface.address.empty()) interface.address = numeric_address(entry.ifa_addr);
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

Result<Network> list_network() {
  Network network;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return Status::from_errno(errno, "cannot list network interfaces");
  const std::unique_ptr<ifaddrs, FreeIfaddrs> owner(list);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    merge(*entry, network.interfaces);
  }
  for (NetworkInterface& one : network.interfaces) one.is_internal = is_internal(one.name);
  // Without the file (a kernel without IPv4 routes) there is no default route; auto has other
  // choices then.
  if (const auto routes = read_file(kRouteFile, kRouteFileBytesMax)) {
    network.default_route = find_default_route(*routes).value_or("");
  }
  return network;
}

}  // namespace braid
