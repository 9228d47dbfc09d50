// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/socket_address.h"

namespace braid {

struct Inet6Address {
  std::string device;
  SocketAddress address;  // with port 0
};

// This host's IPv6 addresses, and which device has each. Those to be reached at come first: global
// ones that last, then temporary and outdated ones, then link-local ones. An address that another
// host has, too, is left out. Takes no lock of the kernel's that is held for long, as getifaddrs()
// does.
std::vector<Inet6Address> inet6_addresses();
// Those of one device.
std::vector<SocketAddress> inet6_addresses_of(const std::string& device);

// The same, of the text of /proc/net/if_inet6.
std::vector<Inet6Address> parse_inet6_addresses(std::string_view if_inet6);

}  // namespace braid
