// SPDX-License-Identifier: Apache-2.0
#include "base/stderr_sink.h"

#include <csignal>
#include <memory>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <sys/socket.h>

#include "base/fd.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

enum class Kind : uint8_t { Pipe, Socket };

class StderrSinkTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as the daemon does
    int ends[2]{-1, -1};
    if (GetParam() == Kind::Pipe) {
      ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    } else {
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    }
    reader_ = Fd(ends[0]);
    writer_ = Fd(ends[1]);
    ASSERT_EQ(::fcntl(reader_.get(), F_SETFL, O_NONBLOCK), 0);  // the writer's end stays blocking
    logger_ = std::make_unique<spdlog::logger>("test", std::make_shared<StderrSink>(writer_.get()));
    logger_->set_pattern("%v");
  }

  std::string read_all() {
    std::string all;
    std::string part(1 << 16, 0);
    for (ssize_t got = 0; (got = ::read(reader_.get(), part.data(), part.size())) > 0;)
      all.append(part, 0, static_cast<size_t>(got));
    return all;
  }

  Fd reader_;
  Fd writer_;
  std::unique_ptr<spdlog::logger> logger_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, StderrSinkTest, ::testing::Values(Kind::Pipe, Kind::Socket));

TEST_P(StderrSinkTest, WritesWhatThereIsRoomFor) {
  logger_->info("one");
  logger_->info("two");
  EXPECT_EQ(read_all(), "one\ntwo\n");
}

TEST_P(StderrSinkTest, WhoDoesNotReadHoldsUpNobodyAndIsToldWhatWasLost) {
  constexpr size_t kLines = 10'000;
  const std::string line(1000, 'x');
  for (size_t i = 0; i < kLines; ++i) logger_->info(line);
  const std::string before = read_all();
  EXPECT_THAT(before, Not(HasSubstr("lost")));
  const size_t written = before.size() / (line.size() + 1);
  EXPECT_EQ(before.size() % (line.size() + 1), 0u) << "whole lines only";
  ASSERT_LT(written, kLines);
  logger_->info("again");
  logger_->info("and again");
  EXPECT_EQ(read_all(), fmt::format("{} lines were lost here: nobody read them in time\n"
                                    "again\nand again\n",
                                    kLines - written));
}

TEST_P(StderrSinkTest, LongLinesAreCut) {
  logger_->info(std::string(10'000, 'x'));
  logger_->info("next");
  EXPECT_EQ(read_all(), std::string(4095, 'x') + "\nnext\n");
}

TEST_P(StderrSinkTest, AReaderThatHasGoneHoldsUpNobody) {
  reader_ = Fd();
  for (int i = 0; i < 1000; ++i) logger_->info("line");
}

}  // namespace
}  // namespace braid
