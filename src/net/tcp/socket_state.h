// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "net/flow_channel.h"

namespace braid {

// What the kernel says of a connected TCP socket (TCP_INFO). Nothing: it says nothing.
std::optional<SocketState> read_socket_state(int socket);

}  // namespace braid
