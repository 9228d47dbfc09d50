// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

namespace braid {

struct TcpEnd {
  std::string address;  // IPv4
  uint16_t port = 0;
};

// Whose process on this host has the TCP connection with the end `own`, to `other`. The kernel is
// asked (NETLINK_SOCK_DIAG). Nothing: there is none, or the kernel does not say. Any thread.
std::optional<uid_t> user_of_connection(const TcpEnd& own, const TcpEnd& other);

}  // namespace braid
