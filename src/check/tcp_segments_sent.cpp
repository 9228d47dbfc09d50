// SPDX-License-Identifier: Apache-2.0
#include "check/tcp_segments_sent.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include <linux/tcp.h>  // netinet/tcp.h does not know tcpi_data_segs_out
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/socket_address.h"

namespace braid {
namespace {

constexpr const char* kOwnDescriptors = "/proc/self/fd";

bool leads_to(int descriptor, std::span<const std::string> addresses) {
  sockaddr_storage remote{};
  socklen_t length = sizeof(remote);
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&remote), &length) != 0) return false;
  const auto address = SocketAddress::from(reinterpret_cast<const sockaddr*>(&remote));
  if (!address) return false;
  // The other node has its own name for the device of a link-local address.
  const auto without_device = [](const std::string& text) {
    return text.substr(0, text.find('%'));
  };
  return std::ranges::count(addresses, without_device(address->host()), without_device) != 0;
}

void add(int descriptor, TcpSegmentsSent& sent) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
      length < offsetof(tcp_info, tcpi_data_segs_out) + sizeof(info.tcpi_data_segs_out))
    return;
  sent.segments += info.tcpi_data_segs_out;
  sent.resent += info.tcpi_total_retrans;
}

}  // namespace

TcpSegmentsSent tcp_segments_sent(std::span<const std::string> addresses) {
  TcpSegmentsSent sent;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(kOwnDescriptors, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    // Another thread may have closed it meanwhile: then both calls fail, or tell of another
    // connection.
    if (descriptor >= 0 && leads_to(descriptor, addresses)) add(descriptor, sent);
  }
  return sent;
}

}  // namespace braid
