// SPDX-License-Identifier: Apache-2.0
#include "bench/event_counts.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

namespace braid::bench {
namespace {

Result<uint64_t> tracepoint_id() {
  // `ip netns exec` and scripts/cluster hide what is mounted below /sys; who calls them sees it.
  const std::string folders[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing",
                                 fmt::format("/proc/{}/root/sys/kernel/tracing", ::getppid())};
  for (const std::string& folder : folders) {
    std::ifstream file(folder + "/events/raw_syscalls/sys_enter/id");
    uint64_t id = 0;
    if (file >> id) return id;
  }
  return Status(StatusCode::Unavailable,
                "no tracepoint raw_syscalls:sys_enter is to be seen; as root, 'mount -t tracefs "
                "nodev /sys/kernel/tracing' shows it, if the kernel has it");
}

Result<std::vector<pid_t>> threads_of(pid_t process) {
  std::error_code error;
  std::vector<pid_t> threads;
  for (std::filesystem::directory_iterator entry(fmt::format("/proc/{}/task", process), error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    threads.push_back(thread);
  }
  if (error || threads.empty())
    return make_status(StatusCode::Unavailable, "/proc does not show process {}", process);
  return threads;
}

}  // namespace

EventCounts::EventCounts(pid_t process) : process_(process), opened_(open_counters()) {}

Status EventCounts::open_counters() {
  const auto id = tracepoint_id();
  if (!id) return id.status();
  const auto threads = threads_of(process_);
  if (!threads) return threads.status();
  perf_event_attr event{};
  event.type = PERF_TYPE_TRACEPOINT;
  event.size = sizeof(event);
  event.config = *id;
  event.inherit = 1;
  for (const pid_t thread : *threads) {
    Fd counter(static_cast<int>(
        ::syscall(SYS_perf_event_open, &event, thread, -1, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!counter.is_valid()) {
      return Status::from_errno(
          errno,
          fmt::format("the kernel does not let process {}'s system calls be counted (root, or "
                      "CAP_PERFMON, may)",
                      process_));
    }
    counters_.push_back(std::move(counter));
  }
  return Status::ok();
}

Result<uint64_t> EventCounts::system_calls() const {
  if (!opened_) return opened_;
  uint64_t calls = 0;
  for (const Fd& counter : counters_) {
    uint64_t of_thread = 0;
    if (::read(counter.get(), &of_thread, sizeof(of_thread)) != sizeof(of_thread))
      return Status::from_errno(errno, "cannot read a counter of system calls");
    calls += of_thread;
  }
  return calls;
}

Result<uint64_t> EventCounts::wake_ups() const {
  constexpr std::string_view kField = "voluntary_ctxt_switches:";
  const auto threads = threads_of(process_);
  if (!threads) return threads.status();
  uint64_t switches = 0;
  for (const pid_t thread : *threads) {
    std::ifstream file(fmt::format("/proc/{}/task/{}/status", process_, thread));
    std::string word;
    uint64_t of_thread = 0;
    while (file >> word) {
      if (word == kField && file >> of_thread) switches += of_thread;
    }
  }
  return switches;
}

Result<pid_t> process_behind(const std::string& socket_path) {
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof(address.sun_path))
    return make_status(StatusCode::InvalidArgument, "'{}' is no socket's path", socket_path);
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  ucred listener{};
  socklen_t bytes = sizeof(listener);
  if (!socket.is_valid() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &listener, &bytes) != 0)
    return Status::from_errno(errno, fmt::format("cannot ask who listens at '{}'", socket_path));
  if (listener.pid == 0)
    return make_status(StatusCode::Unavailable,
                       "who listens at '{}' is in a PID namespace that "
                       "this process does not see",
                       socket_path);
  return listener.pid;
}

}  // namespace braid::bench
