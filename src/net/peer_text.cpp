// SPDX-License-Identifier: Apache-2.0
#include "net/peer_text.h"

#include <fmt/format.h>

#include "loop/socket_address.h"

namespace braid {

std::string describe(const Peer& peer) {
  return fmt::format("node '{}' ({})", peer.name, host_and_port(peer.address, peer.port));
}

std::string printable(std::string_view text, size_t bytes_max) {
  const bool is_cut = text.size() > bytes_max;
  std::string result(text.substr(0, bytes_max));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (is_cut) result += "...";
  return result;
}

}  // namespace braid
