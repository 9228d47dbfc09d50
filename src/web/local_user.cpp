// SPDX-License-Identifier: Apache-2.0
#include "web/local_user.h"

#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/fd.h"

namespace braid {
namespace {

// The kernel answers within the call; this is for the case that it does not.
constexpr timeval kKernelTimeout{1, 0};

struct DiagQuery {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

bool set_end(const TcpEnd& end, __be16& port, __be32* address) {
  port = htons(end.port);
  return ::inet_pton(AF_INET, end.address.c_str(), address) == 1;
}

}  // namespace

std::optional<uid_t> user_of_connection(const TcpEnd& own, const TcpEnd& other) {
  DiagQuery query{};
  query.header.nlmsg_len = sizeof(query);
  query.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  query.header.nlmsg_flags = NLM_F_REQUEST;
  query.body.sdiag_family = AF_INET;
  query.body.sdiag_protocol = IPPROTO_TCP;
  query.body.idiag_states = UINT32_MAX;
  query.body.id.idiag_cookie[0] = query.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (!set_end(own, query.body.id.idiag_sport, query.body.id.idiag_src) ||
      !set_end(other, query.body.id.idiag_dport, query.body.id.idiag_dst)) {
    return std::nullopt;
  }
  const Fd fd(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!fd.is_valid()) return std::nullopt;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kKernelTimeout, sizeof(kKernelTimeout));
  if (::send(fd.get(), &query, sizeof(query), 0) != sizeof(query)) return std::nullopt;
  alignas(nlmsghdr) std::array<char, 4096> buffer;
  const ssize_t size = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg)))) return std::nullopt;
  const auto* header = reinterpret_cast<const nlmsghdr*>(buffer.data());
  if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  inet_diag_msg found{};
  std::memcpy(&found, NLMSG_DATA(header), sizeof(found));
  // A socket that listens on the port would be found, too, where there is no connection.
  if (found.id.idiag_dport != query.body.id.idiag_dport) return std::nullopt;
  return found.idiag_uid;
}

}  // namespace braid
