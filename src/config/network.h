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
  std::string address;  // IPv4, numeric; empty: it has none
  // A bridge or a dummy, as docker0 and virbr0 are: mostly a network of this host's own containers,
  // and often with the same address on every node.
  bool is_internal = false;
};

// What the host has to offer; `list_network` finds it out, tests make it up.
struct Network {
  std::vector<NetworkInterface> interfaces;  // in the kernel's order
  std::string default_route;  // interface of the IPv4 default route; empty: there is none
};

Result<Network> list_network();

// The interface of the default route with the lowest metric in the text of /proc/net/route.
std::optional<std::string> find_default_route(std::string_view proc_net_route);

}  // namespace braid
