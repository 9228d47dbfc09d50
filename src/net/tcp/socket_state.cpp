// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/socket_state.h"

#include <cstddef>

#include <linux/sockios.h>
#include <linux/tcp.h>  // netinet/tcp.h does not know tcpi_delivery_rate
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace braid {

std::optional<SocketState> read_socket_state(int socket) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
      length < offsetof(tcp_info, tcpi_delivery_rate) + sizeof(info.tcpi_delivery_rate))
    return std::nullopt;
  SocketState state;
  state.round_trip_ns = uint64_t{info.tcpi_rtt} * 1000;
  state.bytes_per_second = info.tcpi_delivery_rate;
  state.segments_resent = info.tcpi_total_retrans;
  int unacknowledged = 0;
  if (::ioctl(socket, SIOCOUTQ, &unacknowledged) == 0 && unacknowledged > 0)
    state.unacknowledged_bytes = static_cast<uint64_t>(unacknowledged);
  return state;
}

}  // namespace braid
