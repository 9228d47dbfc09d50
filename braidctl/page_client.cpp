// SPDX-License-Identifier: Apache-2.0
#include "braidctl/page_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/printable.h"
#include "base/socket_address.h"
#include "config/secret_file.h"

namespace braid {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr size_t kPageBytesMax = 256u << 20;
constexpr size_t kPageReadBytes = 64 << 10;
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kNotFound = 404;
constexpr size_t kSentenceBytesMax = 500;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

std::string name_of(const PageAddress& page) { return host_and_port(page.host, page.port); }

Status unreachable(const PageAddress& page, const std::string& why) {
  return make_status(StatusCode::Unavailable,
                     "nothing answers at {}: {}; does braidd run there, and do metrics.address and "
                     "metrics.port (docs/page.md) let this machine in?",
                     name_of(page), why);
}

// False: the time is over.
bool wait_for(int socket, short events, SteadyTime deadline) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd wanted{socket, events, 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// 0, or the errno.
int connect_to(int socket, const addrinfo& address, SteadyTime deadline) {
  if (::connect(socket, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(socket, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof(error);
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

Result<Fd> connect_page(const PageAddress& page, SteadyTime deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(page.host.c_str(), std::to_string(page.port).c_str(), &hints, &found);
  if (failed != 0) {
    return make_status(StatusCode::Unavailable, "host name '{}' cannot be resolved: {}", page.host,
                       ::gai_strerror(failed));
  }
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  int error = 0;
  for (const addrinfo* one = list.get(); one != nullptr; one = one->ai_next) {
    Fd socket(::socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.is_valid()) {
      error = errno;
      continue;
    }
    error = connect_to(socket.get(), *one, deadline);
    if (error == 0) return socket;
  }
  return unreachable(page, std::strerror(error));
}

Status send_request(const PageAddress& page, int socket, std::string_view request,
                    SteadyTime deadline) {
  while (!request.empty()) {
    const ssize_t sent = ::send(socket, request.data(), request.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      request.remove_prefix(static_cast<size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      return unreachable(page, std::strerror(errno));
    } else if (!wait_for(socket, POLLOUT, deadline)) {
      return unreachable(page, "it does not read in time");
    }
  }
  return Status::ok();
}

// All that comes until the other side closes.
Result<std::string> receive_all(const PageAddress& page, int socket, SteadyTime deadline) {
  std::string answer;
  std::array<char, kPageReadBytes> part;
  while (true) {
    const ssize_t got = ::recv(socket, part.data(), part.size(), 0);
    if (got == 0) return answer;
    if (got > 0) {
      answer.append(part.data(), static_cast<size_t>(got));
      if (answer.size() > kPageBytesMax) return unreachable(page, "its answer does not end");
    } else if (errno != EAGAIN && errno != EINTR) {
      return unreachable(page, std::strerror(errno));
    } else if (!wait_for(socket, POLLIN, deadline)) {
      return unreachable(page, "it does not answer in time");
    }
  }
}

// "HTTP/1.1 200 OK" → 200
std::optional<int> http_status(std::string_view head) {
  constexpr std::string_view kBegin = "HTTP/1.";
  const size_t blank = head.find(' ');
  if (!head.starts_with(kBegin) || blank == std::string_view::npos) return std::nullopt;
  int status = 0;
  const char* begin = head.data() + blank + 1;
  const auto [end, error] = std::from_chars(begin, head.data() + head.size(), status);
  return error == std::errc() && end == begin + 3 ? std::optional(status) : std::nullopt;
}

// The value of Content-Length.
std::optional<size_t> content_length(std::string_view head) {
  std::string small(head);
  std::ranges::transform(small, small.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  constexpr std::string_view kName = "\r\ncontent-length: ";
  const size_t at = small.find(kName);
  if (at == std::string::npos) return std::nullopt;
  size_t length = 0;
  const char* begin = small.data() + at + kName.size();
  const auto [end, error] = std::from_chars(begin, small.data() + small.size(), length);
  return error == std::errc() ? std::optional(length) : std::nullopt;
}

Result<std::string> body_of(const PageAddress& page, std::string answer) {
  const size_t end = answer.find(kHeadEnd);
  const std::string head = answer.substr(0, end);
  const auto status = http_status(head);
  if (end == std::string::npos || !status) {
    return make_status(StatusCode::Protocol, "what listens at {} is no page of braidd",
                       name_of(page));
  }
  answer.erase(0, end + kHeadEnd.size());
  if (const auto length = content_length(head); length && *length != answer.size())
    return unreachable(page, "its answer ended in the middle");
  if (*status == 200) return answer;
  std::string sentence = printable(answer.substr(0, answer.find('\n')), kSentenceBytesMax);
  if (*status == kUnauthorized) {
    const char* what = page.token.empty()
                           ? "asks for its token: give the file with --token-file, or the token in "
                             "$BRAID_PAGE_TOKEN"
                           : "does not take this token: its node's page.access names the file with "
                             "the right one";
    return make_status(StatusCode::PermissionDenied, "the page at {} {}", name_of(page), what);
  }
  const StatusCode code = *status == kForbidden  ? StatusCode::PermissionDenied
                          : *status == kNotFound ? StatusCode::NotFound
                                                 : StatusCode::Unavailable;
  return make_status(code, "the page at {} answers {}: {}", name_of(page), *status, sentence);
}

}  // namespace

Result<std::string> get_page(const PageAddress& page, const std::string& path,
                             uint32_t timeout_ms) {
  const SteadyTime deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  auto socket = connect_page(page, deadline);
  if (!socket) return socket.status();
  std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", path, name_of(page));
  if (!page.token.empty()) request += fmt::format("Authorization: Bearer {}\r\n", page.token);
  BRAID_RETURN_IF_ERROR(send_request(page, socket->get(), request + "\r\n", deadline));
  auto answer = receive_all(page, socket->get(), deadline);
  return answer ? body_of(page, std::move(*answer)) : answer.status();
}

std::string as_path_part(const std::string& name) {
  std::string part;
  for (const char c : name) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                          (c >= 'a' && c <= 'z') || c == '-' || c == '_' || c == '.';
    part += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return part;
}

Result<std::string> read_page_token(const std::string& file, const char* variable) {
  std::string token = variable == nullptr ? "" : variable;
  std::string source = "$BRAID_PAGE_TOKEN";
  if (!file.empty()) {
    const auto secret = load_secret_file("--token-file", file, "");
    if (!secret) return secret.status();
    token.assign(secret->begin(), secret->end());
    source = "--token-file";
  }
  const bool is_sendable = std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  if (is_sendable) return token;
  return make_status(StatusCode::InvalidArgument,
                     "{}: a token consists of letters, digits and signs of ASCII, without blanks",
                     source);
}

}  // namespace braid
