// SPDX-License-Identifier: Apache-2.0
#include "check/path_rails.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <vector>

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/inet6_addresses.h"
#include "base/read_file.h"
#include "net/tcp/tcp_rail.h"

namespace braid {
namespace {

constexpr size_t kSpeedFileBytesMax = 64;

// Devices without a link, as a veth or lo, have a file that cannot be read, or -1 in it.
uint32_t speed_of(const std::string& name) {
  const auto text = read_file("/sys/class/net/" + name + "/speed", kSpeedFileBytesMax);
  uint32_t speed = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), speed);
  return speed;
}

}  // namespace

PathEnd::Rail describe_rail(const std::string& name, bool is_up, const std::string& node_address) {
  PathEnd::Rail rail{.name = name, .address = {}, .is_up = is_up};
  ifreq request{};
  if (name.size() >= sizeof(request.ifr_name)) return rail;
  std::memcpy(request.ifr_name, name.data(), name.size());
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_valid()) return rail;
  std::vector<SocketAddress> addresses;
  if (ifreq answer = request; ::ioctl(socket.get(), SIOCGIFADDR, &answer) == 0) {
    if (const auto address = SocketAddress::from(&answer.ifr_addr)) addresses.push_back(*address);
  }
  std::ranges::copy(inet6_addresses_of(name), std::back_inserter(addresses));
  prefer_for_flows(addresses, node_address);
  if (!addresses.empty()) rail.address = addresses.front().host();
  if (ifreq answer = request; ::ioctl(socket.get(), SIOCGIFMTU, &answer) == 0)
    rail.mtu = static_cast<uint32_t>(std::max(answer.ifr_mtu, 0));
  rail.speed_mbit = speed_of(name);
  return rail;
}

}  // namespace braid
