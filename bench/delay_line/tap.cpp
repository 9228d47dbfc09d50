// SPDX-License-Identifier: Apache-2.0
#include "bench/delay_line/tap.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

namespace braid::delay_line {
namespace {

constexpr const char* kTunDevice = "/dev/net/tun";

Status error_of(const std::string& what) { return Status::from_errno(errno, what); }

Result<Tap> create_here(const std::string& interface) {
  Tap tap;
  tap.fd = Fd(::open(kTunDevice, O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!tap.fd.is_valid()) {
    return error_of(fmt::format(
        "{}, which the kernel's tun module provides and a container must be given", kTunDevice));
  }
  ifreq request{};
  if (interface.size() >= sizeof(request.ifr_name)) {
    return make_status(StatusCode::InvalidArgument, "interface name '{}' is too long", interface);
  }
  std::memcpy(request.ifr_name, interface.data(), interface.size());
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(tap.fd.get(), TUNSETIFF, &request) != 0) {
    return error_of(fmt::format("cannot make the TAP device {} (needs CAP_NET_ADMIN)", interface));
  }
  // Large segments and missing checksums pass as they are, from one node's TCP to the other's.
  const unsigned long offloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
  if (::ioctl(tap.fd.get(), TUNSETOFFLOAD, offloads) != 0) {
    return error_of(fmt::format("{}: segmentation offload", interface));
  }
  if (::ioctl(tap.fd.get(), SIOCGIFHWADDR, &request) != 0) {
    return error_of(fmt::format("{}: the Ethernet address", interface));
  }
  tap.address = ethernet_address(request.ifr_hwaddr.sa_data);
  return tap;
}

}  // namespace

Result<Tap> Tap::create(const std::string& namespace_path, const std::string& interface) {
  const Fd home(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!home.is_valid()) return error_of("/proc/self/ns/net");
  const Fd space(::open(namespace_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space.is_valid() || ::setns(space.get(), CLONE_NEWNET) != 0) {
    return error_of(fmt::format("network namespace {}", namespace_path));
  }
  auto tap = create_here(interface);
  if (::setns(home.get(), CLONE_NEWNET) != 0) return error_of("the own network namespace");
  return tap;
}

uint64_t ethernet_address(const void* bytes) {
  uint64_t address = 0;
  std::memcpy(&address, bytes, 6);
  return address;
}

}  // namespace braid::delay_line
