// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/children.h"

#include <csignal>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace braid::gpu_probe {

Result<Child> Child::start(const std::string& program, const std::vector<std::string>& arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno(errno, "pipe2");
  Fd output(ends[0]);
  const Fd input(ends[1]);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.get(), STDOUT_FILENO);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Status::from_errno(error, program);
  return Child(pid, std::move(output));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), output_(std::move(other.output_)) {}

Child::~Child() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string Child::read(int timeout_ms) {
  pollfd one{output_.get(), POLLIN, 0};
  if (::poll(&one, 1, timeout_ms) != 1) return {};
  char bytes[4096];
  const ssize_t count = ::read(output_.get(), bytes, sizeof bytes);
  return count > 0 ? std::string(bytes, static_cast<size_t>(count)) : std::string();
}

int Child::wait() {
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace braid::gpu_probe
