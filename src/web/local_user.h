// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace braid {

struct TcpEnd {
  std::string address;  // numeric
  uint16_t port = 0;

  bool operator==(const TcpEnd&) const = default;
};

// One end of a TCP connection on this host, as the kernel describes it.
struct TcpSocket {
  TcpEnd own;
  TcpEnd other;
  uint8_t state = 0;   // TCP_ESTABLISHED, …
  uint32_t inode = 0;  // 0: no process has it (any more, or yet)
  uid_t user = 0;      // means something only where a process has it: TIME-WAIT is shown as root's
};

// The sockets that one answer of the kernel (NETLINK_SOCK_DIAG) tells of.
std::vector<TcpSocket> sockets_in(std::span<const uint8_t> answer);

// Whose process has the end `own` of a connection to `other`, if that is among `sockets`, is
// connected and some process has it. All else proves nothing about anybody.
std::optional<uid_t> user_among(std::span<const TcpSocket> sockets, const TcpEnd& own,
                                const TcpEnd& other);

// The same, of what the kernel says now. Any thread.
std::optional<uid_t> user_of_connection(const TcpEnd& own, const TcpEnd& other);

// The address of this host that the connection from `peer` to our `port` goes to, where a process
// listens on 0.0.0.0 and has accepted it. Nothing: there is none, or the peer is connected from
// this end with several of our addresses at once. Any thread.
std::optional<std::string> own_address_of(const TcpEnd& peer, uint16_t port);

}  // namespace braid
