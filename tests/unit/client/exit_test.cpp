// SPDX-License-Identifier: Apache-2.0
// Programs that end without closing their job.
#include <cstdlib>

#include <spawn.h>
#include <sys/wait.h>

#include "client_fixture.h"

namespace braid {
namespace {

class ExitTest : public ClientTest {
 protected:
  // The trainer's exit status, once it has ended and the daemon has seen it.
  int run(const char* way, const TestDaemon::Options& options = {}, bool holds = false) {
    start_daemon(options);
    if (holds) daemon_->hold_operations();
    const std::string socket = "BRAID_SOCKET=" + path_;
    std::vector<char*> environment{const_cast<char*>(socket.c_str())};
    for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
    environment.push_back(nullptr);
    char* const arguments[] = {const_cast<char*>(EXITING_TRAINER), const_cast<char*>(way), nullptr};
    pid_t trainer = 0;
    if (::posix_spawn(&trainer, EXITING_TRAINER, nullptr, nullptr, arguments, environment.data()) !=
        0)
      return -1;
    int status = -1;
    EXPECT_EQ(::waitpid(trainer, &status, 0), trainer);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    for (int i = 0; i < 3000 && daemon_->connections() != 0; ++i) ::usleep(10'000);
    EXPECT_EQ(daemon_->connections(), 0u);
    return WEXITSTATUS(status);
  }
};

TEST_F(ExitTest, AProgramThatReturnsFromMainLeavesItsJob) {
  EXPECT_EQ(run("return"), 0);
  EXPECT_EQ(daemon_->seen().reason, "its process has ended");
}

TEST_F(ExitTest, AProgramThatCallsExitLeavesItsJob) {
  EXPECT_EQ(run("exit"), 7);
  EXPECT_EQ(daemon_->seen().reason, "its process has ended");
}

TEST_F(ExitTest, AnotherThreadThatWaitsHoldsNothingUp) {
  EXPECT_EQ(run("waiting", {}, true), 0);
  EXPECT_EQ(daemon_->seen().reason, "its process has ended");
}

TEST_F(ExitTest, ADaemonThatDoesNotAnswerIsNotWaitedForForLong) {
  EXPECT_EQ(run("return", {.answers_leave = false}), 0);
  EXPECT_EQ(daemon_->seen().reason, "its process has ended");
}

TEST_F(ExitTest, AForkedChildThatExitsLeavesNothing) {
  EXPECT_EQ(run("fork"), 0);
  EXPECT_EQ(daemon_->seen().reason, "");
}

TEST_F(ExitTest, AProgramThatDoesNotExitInOrderLeavesNothing) {
  EXPECT_EQ(run("_exit"), 0);
  EXPECT_EQ(daemon_->seen().reason, "");
}

}  // namespace
}  // namespace braid
