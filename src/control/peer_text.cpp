// SPDX-License-Identifier: Apache-2.0
#include "control/peer_text.h"

#include <fmt/format.h>

#include "base/socket_address.h"

namespace braid {

std::string describe(const Peer& peer) {
  return fmt::format("node '{}' ({})", peer.name, host_and_port(peer.address, peer.port));
}

}  // namespace braid
