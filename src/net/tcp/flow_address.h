// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/socket_address.h"

namespace braid {

// A TCP address as nodes tell it to each other: 4 or 6, the port (big-endian), the IP address.
std::vector<uint8_t> flow_address(const SocketAddress& address);

// Nothing: it is none. `rail` is the device that leads to a link-local address.
std::optional<SocketAddress> read_flow_address(std::span<const uint8_t> bytes,
                                               const std::string& rail);

}  // namespace braid
