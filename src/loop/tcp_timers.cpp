// SPDX-License-Identifier: Apache-2.0
#include "loop/tcp_timers.h"

#include <netinet/in.h>
#include <sys/socket.h>

namespace braid {

void shorten_tcp_timers(int socket) {
  const int delay_max_us = kTcpAckDelayMaxUs;
  const int retransmission_min_us = kTcpRetransmissionMinUs;
  ::setsockopt(socket, IPPROTO_TCP, kTcpDelackMaxOption, &delay_max_us, sizeof(delay_max_us));
  ::setsockopt(socket, IPPROTO_TCP, kTcpRtoMinOption, &retransmission_min_us,
               sizeof(retransmission_min_us));
}

}  // namespace braid
