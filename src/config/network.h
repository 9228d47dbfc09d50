// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace braid {

struct NetworkInterface {
  std::string name;
  bool is_up = false;
  bool is_loopback = false;
  bool has_carrier = true;
  // Numeric; IPv4, then IPv6, link-local ones (fe80::1%eth0) last. Empty: it has none.
  std::vector<std::string> addresses;
  // A bridge or a dummy, as docker0 and virbr0 are: mostly a network of this host's own containers,
  // and often with the same address on every node.
  bool is_internal = false;

  // The one to be reached at; empty: it has none.
  std::string address() const { return addresses.empty() ? "" : addresses.front(); }
};

// What the host has to offer; `list_network` finds it out, tests make it up.
struct Network {
  std::vector<NetworkInterface> interfaces;  // in the kernel's order
  // The interface of the default route, of IPv4, or of IPv6 where IPv4 has none; empty: there is
  // none.
  std::string default_route;
};

Result<Network> list_network();

// The interface of the default route with the lowest metric in the text of /proc/net/route.
std::optional<std::string> find_default_route(std::string_view proc_net_route);
// The same, in the text of /proc/net/ipv6_route.
std::optional<std::string> find_default_route_v6(std::string_view proc_net_ipv6_route);

}  // namespace braid
