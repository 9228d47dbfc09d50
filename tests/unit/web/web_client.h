// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/fd.h"

namespace braid::testing {

// Invalid if nobody listens.
inline Fd connect_to(uint16_t port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval timeout{60, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return Fd();
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
inline std::string talk(uint16_t port, const std::string& request) {
  const Fd fd = connect_to(port);
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
