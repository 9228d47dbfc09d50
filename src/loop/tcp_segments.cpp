// SPDX-License-Identifier: Apache-2.0
#include "loop/tcp_segments.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace braid {

void limit_tcp_segments(int socket, int bytes) {
  if (bytes != 0) ::setsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &bytes, sizeof(bytes));
}

}  // namespace braid
