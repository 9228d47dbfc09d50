// SPDX-License-Identifier: Apache-2.0
#include "base/journal.h"

#include <map>
#include <memory>

#include <endian.h>
#include <spdlog/logger.h>
#include <sys/stat.h>

#include "ipc/temporary_directory.h"
#include "ipc/unix_socket.h"

namespace braid {
namespace {

using JournalFields = std::map<std::string, std::string>;

// As journald reads it.
JournalFields parse_entry(std::string_view entry) {
  JournalFields fields;
  while (!entry.empty()) {
    const size_t end = entry.find_first_of("=\n");
    const std::string name(entry.substr(0, end));
    uint64_t bytes = 0;
    if (entry[end] == '=') {
      entry.remove_prefix(end + 1);
      bytes = entry.find('\n');
    } else {
      std::memcpy(&bytes, entry.data() + end + 1, sizeof(bytes));
      bytes = le64toh(bytes);
      entry.remove_prefix(end + 1 + sizeof(bytes));
    }
    fields[name] = entry.substr(0, bytes);
    EXPECT_EQ(entry[bytes], '\n');
    entry.remove_prefix(bytes + 1);
  }
  return fields;
}

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    listen();
    sink_ = std::make_shared<JournalSink>("node-a", path_);
    logger_ = std::make_unique<spdlog::logger>("test", sink_);
  }

  void listen() {
    socket_ = Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_un address = unix_address(path_);
    ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
  }

  std::optional<JournalFields> receive() {
    std::string entry(1 << 16, 0);
    const ssize_t bytes = ::recv(socket_.get(), entry.data(), entry.size(), 0);
    if (bytes < 0) return std::nullopt;
    return parse_entry({entry.data(), static_cast<size_t>(bytes)});
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.file("socket");
  Fd socket_;
  std::shared_ptr<JournalSink> sink_;
  std::unique_ptr<spdlog::logger> logger_;
};

TEST_F(JournalTest, SendsFields) {
  const LogFields about{.job = {"train", 1000}, .rank = 3, .peer = "b", .rail = "eth0", .flow = 7};
  const LineFields of_line(about);
  logger_->warn("a line");
  EXPECT_EQ(receive(), (JournalFields{{"MESSAGE", "a line"},
                                      {"PRIORITY", "4"},
                                      {"SYSLOG_IDENTIFIER", "braidd"},
                                      {"BRAID_NODE", "node-a"},
                                      {"BRAID_JOB", "train"},
                                      {"BRAID_USER", "1000"},
                                      {"BRAID_RANK", "3"},
                                      {"BRAID_PEER", "b"},
                                      {"BRAID_RAIL", "eth0"},
                                      {"BRAID_FLOW", "7"}}));
}

TEST_F(JournalTest, AHostileNameAddsNoFields) {
  const LogFields about{.job = {"x\nPRIORITY=0\n_UID=0\n", 1000}};
  const LineFields of_line(about);
  logger_->info("job 'x\nPRIORITY=0'");
  const auto fields = receive().value();
  EXPECT_EQ(fields.at("BRAID_JOB"), about.job.name);
  EXPECT_EQ(fields.at("MESSAGE"), "job 'x\\nPRIORITY=0'");
  EXPECT_EQ(fields.at("PRIORITY"), "6");
  EXPECT_EQ(fields.count("_UID"), 0u);
}

TEST_F(JournalTest, WhoDoesNotReadHoldsUpNobodyAndIsToldWhatWasLost) {
  constexpr size_t kLines = 100'000;
  for (size_t i = 0; i < kLines; ++i) logger_->info("line");
  size_t taken = 0;
  while (const auto fields = receive()) {
    EXPECT_EQ(fields->at("MESSAGE"), "line");
    ++taken;
  }
  ASSERT_LT(taken, kLines);
  logger_->info("again");
  EXPECT_EQ(receive().value_or(JournalFields{})["MESSAGE"],
            fmt::format("{} lines were lost here: nobody read them in time", kLines - taken));
  EXPECT_EQ(receive().value_or(JournalFields{})["MESSAGE"], "again");
}

TEST_F(JournalTest, GoesOnWithAJournalThatWasStartedAgain) {
  EXPECT_TRUE(sink_->is_reachable());
  socket_ = Fd();
  logger_->info("lost");
  std::filesystem::remove(path_);
  EXPECT_FALSE(sink_->is_reachable());
  logger_->info("lost, too");
  listen();
  logger_->info("here again");
  EXPECT_EQ(receive().value_or(JournalFields{})["MESSAGE"],
            "2 lines were lost here: nobody read them in time");
  EXPECT_EQ(receive().value_or(JournalFields{})["MESSAGE"], "here again");
}

TEST_F(JournalTest, LongLinesAreCut) {
  logger_->info(std::string(1 << 20, 'x'));
  EXPECT_EQ(receive().value_or(JournalFields{})["MESSAGE"], std::string(4096, 'x'));
}

TEST_F(JournalTest, KnowsTheStreamThatSystemdHasMade) {
  struct stat file {};
  ASSERT_EQ(::fstat(socket_.get(), &file), 0);
  const std::string name = fmt::format("{}:{}", file.st_dev, file.st_ino);
  EXPECT_TRUE(goes_to_journal(socket_.get(), name.c_str()));
  EXPECT_FALSE(goes_to_journal(socket_.get(), nullptr));
  EXPECT_FALSE(goes_to_journal(socket_.get(), ""));
  EXPECT_FALSE(goes_to_journal(socket_.get(), (name + "1").c_str()));
  EXPECT_FALSE(goes_to_journal(-1, name.c_str()));
}

}  // namespace
}  // namespace braid
