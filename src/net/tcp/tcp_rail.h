// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/socket_address.h"
#include "base/status.h"

namespace braid {

// A network device that carries TCP flows.
struct TcpRail {
  std::string name;
  std::vector<SocketAddress> addresses;  // its own, with port 0; the preferred one first
  bool is_one_of_several = false;        // routes alone do not tell which rail a flow takes

  // A socket whose connection to that address leaves by this rail.
  Result<Fd> socket_to(const SocketAddress& address) const;
};

// `node_address`, if it is among them, comes first, then those of its family, global ones before
// link-local ones. The first one is where a rail's flows are waited for.
void prefer_for_flows(std::vector<SocketAddress>& addresses, const std::string& node_address);

// The device's addresses, as prefer_for_flows() orders them. NotFound: there is no such device, and
// which there are; Unavailable: it has no address.
Result<TcpRail> find_tcp_rail(const std::string& name, const std::string& node_address);

}  // namespace braid
