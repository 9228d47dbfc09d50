// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/socket_state.h"

#include <cstddef>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace braid {

std::optional<SocketState> read_socket_state(int socket) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
      length < offsetof(tcp_info, tcpi_total_retrans) + sizeof(info.tcpi_total_retrans))
    return std::nullopt;
  SocketState state;
  state.round_trip_ns = uint64_t{info.tcpi_rtt} * 1000;
  state.segments_resent = info.tcpi_total_retrans;
  return state;
}

}  // namespace braid
