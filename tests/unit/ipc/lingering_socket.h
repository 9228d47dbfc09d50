// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"

namespace braid {

// A TCP socket with more to send than its peer takes, and SO_LINGER: who closes it last waits for
// an hour.
class LingeringSocket {
 public:
  LingeringSocket() {
    const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener.get(), name, sizeof(address)), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), name, &length), 0);
    socket_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket_.get(), name, sizeof(address)), 0);
    peer_ = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const linger hour{1, 3600};
    EXPECT_EQ(::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
    const std::vector<char> bytes(1 << 16);
    while (::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
  }
  int fd() const { return socket_.get(); }
  Fd take() { return std::move(socket_); }
  // The owner of a copy is the last one now. The peer stays: without it nobody would wait.
  void let_go() { socket_.reset(); }

 private:
  Fd socket_;
  Fd peer_;  // does not read
};

}  // namespace braid
