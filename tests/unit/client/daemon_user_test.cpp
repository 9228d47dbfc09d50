// SPDX-License-Identifier: Apache-2.0
// A trainer's memory goes to braidd alone, not to another process that was first at the path.
#include <cstdlib>

#include <fcntl.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "client_fixture.h"
#include "ipc/unix_socket.h"

namespace braid {
namespace {

class DaemonUserTest : public ClientTest {
 protected:
  static constexpr uid_t kStranger = 65534;

  ~DaemonUserTest() override { ::unsetenv("BRAID_DAEMON_UID"); }
  // Listens as another user: the kernel remembers who called listen().
  void squat() {
    listener_ = bound_socket(path_);
    ::fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
    // Not seteuid(): of this thread alone.
    ASSERT_EQ(::syscall(SYS_setresuid, -1, kStranger, -1), 0);
    EXPECT_EQ(::listen(listener_.get(), 5), 0);
    ASSERT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
  }
  // What the squatter has got.
  ssize_t bytes_received() {
    const Fd client(::accept(listener_.get(), nullptr, nullptr));
    char byte = 0;
    return client.is_valid() ? ::recv(client.get(), &byte, 1, MSG_DONTWAIT) : -1;
  }

  Fd listener_;
};

TEST_F(DaemonUserTest, AStrangerAtTheSocketIsGivenNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  squat();
  const auto options = job_options();
  braid_job* job = nullptr;
  EXPECT_BRAID_ERROR(braid_open(&options, &job), BRAID_ERROR_PERMISSION_DENIED,
                     "the process that listens on '" + path_ + "' runs as user 65534");
  EXPECT_TRUE(message_has("set BRAID_DAEMON_UID=65534"));
  EXPECT_EQ(bytes_received(), 0);  // not even a Hello: the end of the stream
}

TEST_F(DaemonUserTest, TheEnvironmentAllowsAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  squat();
  ::setenv("BRAID_DAEMON_UID", "65534", 1);
  auto options = job_options();
  options.timeout_ms = 1;  // it never answers
  braid_job* job = nullptr;
  EXPECT_BRAID_ERROR(braid_open(&options, &job), BRAID_ERROR_DEADLINE_EXCEEDED, "does not answer");
  EXPECT_EQ(bytes_received(), 1);
  ::setenv("BRAID_DAEMON_UID", "65533", 1);
  EXPECT_BRAID_ERROR(braid_open(&options, &job), BRAID_ERROR_PERMISSION_DENIED, "65534");
}

TEST_F(DaemonUserTest, WhatIsNoUserNumberIsRefused) {
  start_daemon();
  for (const char* given : {"nobody", "-1", "12 ", "99999999999"}) {
    ::setenv("BRAID_DAEMON_UID", given, 1);
    const auto options = job_options();
    braid_job* job = nullptr;
    EXPECT_INVALID(braid_open(&options, &job), "BRAID_DAEMON_UID is '" + std::string(given) + "'");
  }
}

}  // namespace
}  // namespace braid
