// SPDX-License-Identifier: Apache-2.0
#include "base/port_fault.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

namespace braid {

std::string port_fault(std::string_view key, const SocketAddress& address, int error,
                       std::string_view other) {
  if (error == EADDRINUSE) {
    return fmt::format(
        "{0}: {1} is taken at {2}; stop what listens there (ss -ltnp 'sport = :{1}' names it), or "
        "use {3}",
        key, address.port(), address.host(), other);
  }
  std::string text = fmt::format("{}: {} cannot be opened at {} by user {}: {}", key,
                                 address.port(), address.host(), ::geteuid(), std::strerror(error));
  if (error == EACCES) text += fmt::format("; use {}", other);
  return text;
}

}  // namespace braid
