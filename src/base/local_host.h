// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace braid {

// "localhost", or an address in 127.0.0.0/8 or ::1.
bool is_loopback_host(const std::string& host);

// An address of one of this host's interfaces, or this host's own name (with or without a domain).
// Asks no name server.
bool is_local_host(const std::string& host);

}  // namespace braid
