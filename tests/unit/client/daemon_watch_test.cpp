// SPDX-License-Identifier: Apache-2.0
#include "daemon_watch.h"

#include "ipc/temporary_directory.h"
#include "ipc/unix_socket.h"
#include "test_daemon.h"

namespace braid::client {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
// One tick of a clock that only the test moves. It is behind the real one, so questions are
// overdue.
constexpr uint64_t kTickNs = 1000;

class DaemonWatchTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.file("braidd.sock"); }
  // As a daemon that is stopped: the kernel takes connections, and nobody answers.
  Fd stopped_daemon() const { return listening_socket(path()); }
  std::unique_ptr<TestDaemon> daemon() const {
    return std::make_unique<TestDaemon>(TestDaemon::Options{.path = path()});
  }
  DaemonWatch::News look() { return watch_.look(path(), now_ns()); }
  DaemonWatch::News until_news() {
    while (true) {
      const DaemonWatch::News news = look();
      if (news != DaemonWatch::News::None) return news;
    }
  }

  TemporaryDirectory folder_;
  // Asked all the time; a look is never late.
  DaemonWatch watch_{{.quiet_ns = 0, .answer_ns = kSecondNs / 20, .gap_ns = UINT64_MAX}};
};

TEST_F(DaemonWatchTest, ADaemonThatDoesNotAnswerIsNewsOnce) {
  const Fd stopped = stopped_daemon();
  EXPECT_EQ(until_news(), DaemonWatch::News::Silent);
  EXPECT_GE(watch_.silent_ns(now_ns()), kSecondNs / 20);
  const uint64_t end_ns = now_ns() + kSecondNs / 5;  // in which it is asked again
  while (now_ns() < end_ns) ASSERT_EQ(look(), DaemonWatch::News::None);
}

TEST_F(DaemonWatchTest, ThatItAnswersAgainIsNews) {
  {
    const Fd stopped = stopped_daemon();
    ASSERT_EQ(until_news(), DaemonWatch::News::Silent);
  }
  std::filesystem::remove(path());
  const auto other = daemon();
  EXPECT_EQ(until_news(), DaemonWatch::News::Answers);
  EXPECT_EQ(watch_.silent_ns(now_ns()), 0U);
}

TEST_F(DaemonWatchTest, SoIsThatSomethingHasCome) {
  const Fd stopped = stopped_daemon();
  ASSERT_EQ(until_news(), DaemonWatch::News::Silent);
  watch_.on_heard();
  EXPECT_EQ(look(), DaemonWatch::News::Answers);
}

TEST_F(DaemonWatchTest, ADaemonThatAnswersIsNoNews) {
  watch_ = DaemonWatch({.quiet_ns = 0, .answer_ns = 3600 * kSecondNs, .gap_ns = UINT64_MAX});
  const auto answering = daemon();
  while (answering->messages_sent() < 3) ASSERT_EQ(look(), DaemonWatch::News::None);
}

TEST_F(DaemonWatchTest, WhereNobodyListensThereIsAnAnswer) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(look(), DaemonWatch::News::None);
  EXPECT_EQ(watch_.silent_ns(now_ns()), 0U);
}

TEST_F(DaemonWatchTest, ItIsAskedWhenItWasQuietForSoLong) {
  watch_ = DaemonWatch({.quiet_ns = 10 * kTickNs, .answer_ns = 0, .gap_ns = UINT64_MAX});
  const Fd stopped = stopped_daemon();
  EXPECT_EQ(watch_.look(path(), 100 * kTickNs), DaemonWatch::News::None);
  EXPECT_EQ(watch_.look(path(), 110 * kTickNs - 1), DaemonWatch::News::None);
  watch_.on_heard();
  EXPECT_EQ(watch_.look(path(), 111 * kTickNs), DaemonWatch::News::None);
  EXPECT_EQ(watch_.look(path(), 121 * kTickNs - 1), DaemonWatch::News::None);
  EXPECT_EQ(watch_.look(path(), 121 * kTickNs), DaemonWatch::News::Silent);
  EXPECT_EQ(watch_.silent_ns(121 * kTickNs), 10 * kTickNs);
}

// Its silence is no longer than that somebody listened.
TEST_F(DaemonWatchTest, WhileNobodyLooksNothingIsSilent) {
  watch_ = DaemonWatch({.quiet_ns = 10 * kTickNs, .answer_ns = 0, .gap_ns = 3 * kTickNs});
  const Fd stopped = stopped_daemon();
  for (uint64_t tick = 100; tick < 1000; tick += 4)
    EXPECT_EQ(watch_.look(path(), tick * kTickNs), DaemonWatch::News::None);
  for (uint64_t tick = 997; tick < 1006; tick += 1)
    EXPECT_EQ(watch_.look(path(), tick * kTickNs), DaemonWatch::News::None);
  EXPECT_EQ(watch_.look(path(), 1006 * kTickNs), DaemonWatch::News::Silent);
}

}  // namespace
}  // namespace braid::client
