// SPDX-License-Identifier: Apache-2.0
#include "loop/tcp_round_trip.h"

#include <cstddef>

#include <linux/tcp.h>  // netinet/tcp.h does not know tcpi_min_rtt
#include <netinet/in.h>
#include <sys/socket.h>

namespace braid {

std::optional<uint64_t> tcp_round_trip_ns(int socket) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
      length < offsetof(tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt))
    return std::nullopt;
  if (info.tcpi_min_rtt == 0 || info.tcpi_min_rtt == UINT32_MAX) return std::nullopt;
  return uint64_t{info.tcpi_min_rtt} * 1000;
}

}  // namespace braid
