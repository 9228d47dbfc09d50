// SPDX-License-Identifier: Apache-2.0
#include "config/listen_check.h"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/port_fault.h"
#include "base/socket_address.h"
#include "config/rails.h"

namespace braid {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool may_write_in(const std::string& folder) {
  return ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

bool answers(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
    return true;
  return errno == EAGAIN;  // its backlog is full
}

// Empty: the socket can be made. The daemon makes the socket's folder, but none above it.
std::string socket_trouble(const std::string& path) {
  const std::string folder = folder_of(path);
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) {
    const int reason = errno;
    if (reason == ENOENT && may_write_in(folder_of(folder))) return {};
    return fmt::format(
        "client.socket: the folder {} is not there, and user {} cannot make it ({}); make it for "
        "that user (as a service, systemd does), or use a path in another folder",
        folder, ::geteuid(), std::strerror(reason == ENOENT ? EACCES : reason));
  }
  if (!S_ISDIR(info.st_mode))
    return fmt::format("client.socket: {} is no folder; use a path in one", folder);
  if (!may_write_in(folder)) {
    return fmt::format(
        "client.socket: user {} may not write to the folder {}; run: chown {} {}, or use a path "
        "in another folder",
        ::geteuid(), folder, ::geteuid(), folder);
  }
  if (::lstat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode))
    return fmt::format("client.socket: {} is there and is no socket; remove it", path);
  return {};
}

// Opens the port, into `held`. Empty: it could be opened, or the address is none of this machine's.
std::string port_trouble(std::string_view key, const std::string& host, uint16_t port,
                         std::string_view other, std::vector<Fd>& held) {
  const auto address = SocketAddress::parse(host, port);
  if (!address) return {};
  Fd socket(::socket(address->get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  const int off = 0;
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address->is_v6())
    (void)::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  const bool is_open =
      ::bind(socket.get(), address->get(), address->bytes()) == 0 && ::listen(socket.get(), 1) == 0;
  if (!is_open) return errno == EADDRNOTAVAIL ? "" : port_fault(key, *address, errno, other);
  held.push_back(std::move(socket));
  return {};
}

}  // namespace

ListenCheck check_listening(const DaemonConfig& config, const std::string& node_address) {
  ListenCheck check;
  check.is_served = answers(config.client.socket);
  if (check.is_served) return check;
  const auto note = [&check](std::string trouble) {
    if (!trouble.empty()) check.troubles.push_back(std::move(trouble));
  };
  note(socket_trouble(config.client.socket));
  const std::string control = resolve_listen(config, node_address);
  if (!config.control.cluster_key_file.empty() && !control.empty())
    note(port_trouble("control.port", control, config.control.port.value_or(0),
                      "another port, the same on all nodes", check.held));
  if (config.metrics.port != 0)
    note(port_trouble("metrics.port", config.metrics.address, config.metrics.port.value_or(0),
                      "another port, or 0 for no metrics", check.held));
  return check;
}

}  // namespace braid
