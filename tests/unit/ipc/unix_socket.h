// SPDX-License-Identifier: Apache-2.0
// Unix sockets of tests, by the path of their file.
#pragma once

#include <cstring>
#include <string>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"

namespace braid {

inline sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

// Not valid if nobody listens there.
inline Fd connected_socket(const std::string& path) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = unix_address(path);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    socket.reset();
  return socket;
}

inline Fd bound_socket(const std::string& path) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = unix_address(path);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return socket;
}

inline Fd listening_socket(const std::string& path) {
  Fd socket = bound_socket(path);
  EXPECT_EQ(::listen(socket.get(), 8), 0);
  return socket;
}

}  // namespace braid
