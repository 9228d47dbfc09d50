// SPDX-License-Identifier: Apache-2.0
#include "ipc/process_watch.h"

#include <utility>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// Since Linux 6.5: the pidfd of exactly the process that connected.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace braid {
namespace {

Fd open_pidfd(int socket, pid_t pid) {
  int fd = -1;
  socklen_t length = sizeof(fd);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &length) == 0) return Fd(fd);
  if (pid <= 0) return {};
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace

std::unique_ptr<ProcessWatch> ProcessWatch::create(Loop& loop, int socket, pid_t pid,
                                                   std::function<void()> died) {
  Fd process = open_pidfd(socket, pid);
  if (!process.is_valid()) return nullptr;
  auto poll = Poll::create(loop, process.get());
  if (!poll) return nullptr;
  std::unique_ptr<ProcessWatch> watch(new ProcessWatch(std::move(process), std::move(*poll)));
  watch->poll_->start(UV_READABLE, [watch = watch.get(), died = std::move(died)](int) {
    watch->poll_->stop();
    died();
  });
  return watch;
}

}  // namespace braid
