// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace braid {

// The interface that has this IP address; empty: none.
std::string own_interface_of(const std::string& address);

// This host's end of the way to an IP address: "10.0.0.2 (eth0)"; empty: there is no way, or it
// does not leave the host.
std::string own_end_towards(const std::string& address);

// This host's interfaces that are up and have an IP address, but lo: "eth0 (10.0.0.2, 2001:db8::2),
// eth1 (10.0.1.2)", or "no interface with an IP address". Link-local addresses are named only where
// an interface has no other.
std::string own_interfaces();

// Whether an interface that is up, but lo, has an IP address of that family that is not link-local.
bool has_own_address(bool is_v6);

// "localhost", or an address in 127.0.0.0/8 or ::1.
bool is_loopback_host(const std::string& host);

// An address of one of this host's interfaces, or this host's own name (with or without a domain).
// Asks no name server.
bool is_local_host(const std::string& host);

}  // namespace braid
