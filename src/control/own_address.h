// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/socket_address.h"

namespace braid {

// Which addresses mean this daemon itself.
class OwnAddress {
 public:
  // `advertised` may be a host name.
  OwnAddress(const SocketAddress& bound, std::string advertised);

  bool is_own_name(const std::string& host, uint16_t port) const;
  bool is_own(const SocketAddress& address) const;
  // An address of this host (any interface's) with our own port. Who listens there, if anybody, may
  // be another daemon.
  bool may_be_own(const SocketAddress& address) const;

 private:
  const SocketAddress bound_;
  const std::string advertised_;
};

}  // namespace braid
