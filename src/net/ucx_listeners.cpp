// SPDX-License-Identifier: Apache-2.0
#include "net/ucx_listeners.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/log.h"

namespace braid {
namespace {

bool is_listening_tcp(int fd) {
  int value = 0;
  socklen_t bytes = sizeof(value);
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &bytes) != 0 || value == 0) return false;
  bytes = sizeof(value);
  return ::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &bytes) == 0 && value == IPPROTO_TCP;
}

}  // namespace

int lowest_free_descriptor() { return Fd(::eventfd(0, EFD_CLOEXEC)).get(); }

int descriptors_end() {
  int end = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return end;
  while (const dirent* entry = ::readdir(directory))
    end = std::max(end, std::atoi(entry->d_name) + 1);
  ::closedir(directory);
  return end;
}

std::vector<int> listening_tcp_sockets(int from, int to) {
  std::vector<int> found;
  for (int fd = from; fd < to; ++fd) {
    if (is_listening_tcp(fd)) found.push_back(fd);
  }
  return found;
}

std::vector<int> sockets_in_address(std::span<const int> sockets,
                                    std::span<const uint8_t> address) {
  std::vector<int> found;
  for (const int fd : sockets) {
    sockaddr_storage local{};
    socklen_t bytes = sizeof(local);
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&local), &bytes) != 0) continue;
    const in_port_t port = local.ss_family == AF_INET6
                               ? reinterpret_cast<const sockaddr_in6*>(&local)->sin6_port
                               : reinterpret_cast<const sockaddr_in*>(&local)->sin_port;
    const auto* needle =
        reinterpret_cast<const uint8_t*>(&port);  // in network order, as UCX has it
    if (std::search(address.begin(), address.end(), needle, needle + sizeof(port)) !=
        address.end()) {
      found.push_back(fd);
    }
  }
  return found;
}

void drop_strangers(int listening_socket) {
  sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &drop_all};
  if (::setsockopt(listening_socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) !=
      0) {
    BRAID_LOG_DEBUG("a port of UCX stays open to strangers: {}", std::strerror(errno));
  }
}

}  // namespace braid
