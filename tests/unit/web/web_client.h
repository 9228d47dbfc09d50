// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <sys/socket.h>
#include <sys/time.h>

#include "base/fd.h"
#include "base/socket_address.h"

namespace braid::testing {

// Invalid if nobody listens.
inline Fd connect_to(uint16_t port, const std::string& host = "127.0.0.1") {
  const auto address = *SocketAddress::parse(host, port);
  Fd fd(::socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval timeout{60, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  if (::connect(fd.get(), address.get(), address.bytes()) != 0) return Fd();
  return fd;
}

inline bool send_text(const Fd& fd, const std::string& text) {
  return ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

// What comes until the other side has closed.
inline std::string read_all(const Fd& fd) {
  std::string answer;
  std::array<char, 4096> buffer;
  ssize_t count = 0;
  while ((count = ::recv(fd.get(), buffer.data(), buffer.size(), 0)) > 0) {
    answer.append(buffer.data(), static_cast<size_t>(count));
  }
  return answer;
}

// The whole answer; "" if nobody answers. `request`: up to the empty line.
inline std::string talk(uint16_t port, const std::string& request,
                        const std::string& host = "127.0.0.1") {
  const Fd fd = connect_to(port, host);
  if (!fd.is_valid() || !send_text(fd, request + "\r\n\r\n")) return "";
  return read_all(fd);
}

inline std::string get(uint16_t port, const std::string& path, const std::string& headers = "") {
  return talk(port, "GET " + path + " HTTP/1.1\r\nHost: localhost" + headers);
}

inline int status_of(const std::string& answer) {
  return answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3));
}

inline std::string body_of(const std::string& answer) {
  const size_t head = answer.find("\r\n\r\n");
  return head == std::string::npos ? "" : answer.substr(head + 4);
}

}  // namespace braid::testing
