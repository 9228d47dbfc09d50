// SPDX-License-Identifier: Apache-2.0
#include "web/local_user.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/fd.h"
#include "base/socket_address.h"

namespace braid {
namespace {

// The kernel answers within the call; this is for the case that it does not.
constexpr timeval kKernelTimeout{1, 0};
// One answer holds dozens of sockets, and few have the same two ports.
constexpr int kAnswersMax = 16;

constexpr uint32_t bit(int state) { return 1u << state; }

// As who has an end is connected with the other one. Nobody gets into FIN-WAIT or CLOSE-WAIT who
// was not connected; in all other states the kernel may mean another connection of these ends, or
// none.
constexpr uint32_t kConnectedStates =
    bit(TCP_ESTABLISHED) | bit(TCP_FIN_WAIT1) | bit(TCP_FIN_WAIT2) | bit(TCP_CLOSE_WAIT);

struct DiagQuery {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

DiagQuery make_query(uint8_t family, uint16_t flags, uint32_t states) {
  DiagQuery query{};
  query.header.nlmsg_len = sizeof(query);
  query.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  query.header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
  query.body.sdiag_family = family;
  query.body.sdiag_protocol = IPPROTO_TCP;
  query.body.idiag_states = states;
  query.body.id.idiag_cookie[0] = query.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return query;
}

void set_end(const SocketAddress& end, __be16& port, __be32* address) {
  port = htons(end.port());
  if (end.is_v6()) {
    const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(end.get());
    std::memcpy(address, &v6.sin6_addr, sizeof(v6.sin6_addr));
  } else {
    const auto& v4 = *reinterpret_cast<const sockaddr_in*>(end.get());
    std::memcpy(address, &v4.sin_addr, sizeof(v4.sin_addr));
  }
}

// A socket of IPv6 whose connection is one of IPv4 has addresses of IPv4 here.
TcpEnd end_of(const inet_diag_msg& said, __be16 port, const __be32* address) {
  sockaddr_storage storage{};
  if (said.idiag_family == AF_INET6) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    v6.sin6_family = AF_INET6;
    std::memcpy(&v6.sin6_addr, address, sizeof(v6.sin6_addr));
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) v6.sin6_scope_id = said.id.idiag_if;
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    v4.sin_family = AF_INET;
    std::memcpy(&v4.sin_addr, address, sizeof(v4.sin_addr));
  }
  return {SocketAddress::from(reinterpret_cast<const sockaddr*>(&storage))->host(), ntohs(port)};
}

// Calls take(type, body) for each message of an answer. False: the answer is cut short.
template <typename Take>
bool for_each_message(std::span<const uint8_t> answer, const Take& take) {
  while (answer.size() >= NLMSG_HDRLEN) {
    nlmsghdr header{};
    std::memcpy(&header, answer.data(), sizeof(header));
    if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > answer.size()) return false;
    take(header.nlmsg_type, answer.subspan(NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN));
    answer = answer.subspan(std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), answer.size()));
  }
  return true;
}

bool is_last(std::span<const uint8_t> answer) {
  bool last = false;
  const bool is_whole = for_each_message(answer, [&last](uint16_t type, const auto&) {
    last = last || type == NLMSG_DONE || type == NLMSG_ERROR;
  });
  return last || !is_whole;
}

// What the kernel says; empty where it says nothing.
std::vector<TcpSocket> ask_kernel(const DiagQuery& query) {
  std::vector<TcpSocket> found;
  const Fd fd(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!fd.is_valid()) return found;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kKernelTimeout, sizeof(kKernelTimeout));
  if (::send(fd.get(), &query, sizeof(query), 0) != sizeof(query)) return found;
  const bool has_several = (query.header.nlmsg_flags & NLM_F_DUMP) != 0;
  for (int i = 0; i < kAnswersMax; ++i) {
    std::array<uint8_t, 16384> buffer;
    const ssize_t size = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) break;
    const std::span<const uint8_t> answer(buffer.data(), static_cast<size_t>(size));
    for (TcpSocket& one : sockets_in(answer)) found.push_back(std::move(one));
    if (!has_several || is_last(answer)) break;
  }
  return found;
}

}  // namespace

std::vector<TcpSocket> sockets_in(std::span<const uint8_t> answer) {
  std::vector<TcpSocket> found;
  for_each_message(answer, [&found](uint16_t type, std::span<const uint8_t> body) {
    inet_diag_msg said{};
    if (type != SOCK_DIAG_BY_FAMILY || body.size() < sizeof(said)) return;
    std::memcpy(&said, body.data(), sizeof(said));
    if (said.idiag_family != AF_INET && said.idiag_family != AF_INET6) return;
    found.push_back({end_of(said, said.id.idiag_sport, said.id.idiag_src),
                     end_of(said, said.id.idiag_dport, said.id.idiag_dst), said.idiag_state,
                     said.idiag_inode, said.idiag_uid});
  });
  return found;
}

std::optional<uid_t> user_among(std::span<const TcpSocket> sockets, const TcpEnd& own,
                                const TcpEnd& other) {
  const auto found = std::ranges::find_if(sockets, [&](const TcpSocket& one) {
    return one.own == own && one.other == other && one.state < 32 &&
           (bit(one.state) & kConnectedStates) != 0 && one.inode != 0;
  });
  return found == sockets.end() ? std::nullopt : std::optional(found->user);
}

std::optional<uid_t> user_of_connection(const TcpEnd& own, const TcpEnd& other) {
  const auto from = SocketAddress::parse(own.address, own.port);
  const auto to = SocketAddress::parse(other.address, other.port);
  if (!from || !to || from->is_v6() != to->is_v6()) return std::nullopt;
  DiagQuery query = make_query(static_cast<uint8_t>(from->get()->sa_family), 0, UINT32_MAX);
  inet_diag_sockid& id = query.body.id;
  set_end(*from, id.idiag_sport, id.idiag_src);
  set_end(*to, id.idiag_dport, id.idiag_dst);
  if (from->is_link_local())
    id.idiag_if = reinterpret_cast<const sockaddr_in6*>(from->get())->sin6_scope_id;
  return user_among(ask_kernel(query), own, other);
}

std::optional<std::string> own_address_of(const TcpEnd& peer, uint16_t port) {
  DiagQuery query = make_query(AF_INET, NLM_F_DUMP, kConnectedStates);
  query.body.id.idiag_sport = htons(port);
  query.body.id.idiag_dport = htons(peer.port);
  std::optional<std::string> address;
  for (const TcpSocket& one : ask_kernel(query)) {
    const bool is_ours = one.other == peer && one.own.port == port && one.inode != 0;
    if (!is_ours) continue;
    if (address) return std::nullopt;
    address = one.own.address;
  }
  return address;
}

}  // namespace braid
