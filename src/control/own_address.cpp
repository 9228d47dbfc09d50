// SPDX-License-Identifier: Apache-2.0
#include "control/own_address.h"

#include <utility>

#include <uv.h>

namespace braid {
namespace {

bool is_of_this_host(const SocketAddress& address) {
  // The whole of 127/8 is, also where no interface lists it: Debian's /etc/hosts gives the host's
  // name to 127.0.1.1.
  if (address.is_loopback()) return true;
  uv_interface_address_t* interfaces = nullptr;
  int count = 0;
  if (uv_interface_addresses(&interfaces, &count) != 0) return false;
  bool is_found = false;
  for (int i = 0; i < count; ++i) {
    const auto own = SocketAddress::from(reinterpret_cast<const sockaddr*>(&interfaces[i].address));
    is_found |= own && own->host() == address.host();
  }
  uv_free_interface_addresses(interfaces, count);
  return is_found;
}

}  // namespace

OwnAddress::OwnAddress(const SocketAddress& bound, std::string advertised)
    : bound_(bound), advertised_(std::move(advertised)) {}

bool OwnAddress::is_own_name(const std::string& host, uint16_t port) const {
  if (port != bound_.port()) return false;
  if (host == advertised_) return true;
  const auto address = SocketAddress::parse(host, port);
  return address && is_own(*address);
}

bool OwnAddress::is_own(const SocketAddress& address) const {
  if (address.port() != bound_.port()) return false;
  if (bound_.is_any()) return is_of_this_host(address);
  return address == bound_ || address.host() == advertised_;
}

bool OwnAddress::may_be_own(const SocketAddress& address) const {
  return address.port() == bound_.port() && is_of_this_host(address);
}

}  // namespace braid
