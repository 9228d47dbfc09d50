// SPDX-License-Identifier: Apache-2.0
#include "bench/operation_counts.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace braid::bench {
namespace {

using ::testing::HasSubstr;

TEST(EventCounts, SystemCallsAreCountedOrTheErrorSaysWhyNot) {
  constexpr uint64_t kCalls = 1000;
  const EventCounts events(::getpid());
  const auto before = events.system_calls();
  for (uint64_t i = 0; i < kCalls; ++i) ::syscall(SYS_getppid);
  const auto after = events.system_calls();
  ASSERT_EQ(before.is_ok(), after.is_ok());
  if (!before.is_ok()) {
    EXPECT_FALSE(before.status().message().empty());
    EXPECT_EQ(before.status().message(), after.status().message());
    return;
  }
  EXPECT_GE(*after - *before, kCalls);
  EXPECT_LT(*after - *before, 2 * kCalls);
}

TEST(EventCounts, WakeUpsOfAllThreadsCount) {
  const EventCounts events(::getpid());
  const auto before = events.wake_ups();
  ASSERT_TRUE(before.is_ok()) << before.status().message();
  uint64_t after = 0;
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) std::this_thread::sleep_for(std::chrono::microseconds(100));
    after = events.wake_ups().value();
  });
  other.join();
  EXPECT_GE(after - *before, 20u);
}

TEST(EventCounts, AProcessThatHasGoneIsNamed) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto wake_ups = EventCounts(child).wake_ups();
  ASSERT_FALSE(wake_ups.is_ok());
  EXPECT_THAT(wake_ups.status().message(), HasSubstr(std::to_string(child)));
}

TEST(ProcessBehind, IsWhoListens) {
  const std::string path = ::testing::TempDir() + "braid-bench-" + std::to_string(::getpid());
  const Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
            0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const auto found = process_behind(path);
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  EXPECT_EQ(*found, ::getpid());
  std::filesystem::remove(path);
  const auto gone = process_behind(path);
  ASSERT_FALSE(gone.is_ok());
  EXPECT_THAT(gone.status().message(), HasSubstr(path));
}

TEST(CountsLines, SayWhatIsKnownAndWhyTheRestIsNot) {
  OperationCounts counts;
  counts.operations = 400;
  counts.daemon = {12.25, 1.5};
  counts.trainer = {std::nullopt, 1};
  counts.reduced = 1000;
  counts.sent = 1064.4;
  counts.why_not = "nobody may";
  EXPECT_EQ(counts_lines(counts),
            "# each of 400 in a row          system calls  wake-ups  reduced (B)   copied (B)     "
            "sent (B)  received (B)\n"
            "# braidd, of a node                     12.2       1.5         1000            -     "
            "    1064            -\n"
            "# trainer, of a rank                       -       1.0            0            0     "
            "       0            0\n"
            "# -: nobody may");
}

}  // namespace
}  // namespace braid::bench
