// SPDX-License-Identifier: Apache-2.0
#include "daemon/personal_life.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errors_testing.h"
#include "base/read_file.h"
#include "config/personal.h"
#include "ipc/temporary_directory.h"
#include "loop_testing.h"

namespace braid {
namespace {

class TurnedClock final : public Clock {
 public:
  uint64_t now_ns() const override { return now_ms * 1'000'000; }
  uint64_t now_ms = 1;
};

class PersonalLifeTest : public testing::LoopTest {
 protected:
  PersonalLifeTest() {
    EXPECT_EQ(::mkdir(above_.c_str(), 0700), 0);
    EXPECT_EQ(::mkdir(folder_.c_str(), 0700), 0);
  }

  void begin() {
    PersonalLife::Options options;
    options.folder = folder_;
    options.folder_above = above_;
    options.use = [this] { return use_; };
    options.end = [this] { ++ends_; };
    auto life = PersonalLife::create(*loop_, clock_, std::move(options), news_);
    ASSERT_TRUE(life.is_ok()) << life.status().message();
    life_ = std::move(life).value();
  }
  void look_after(uint64_t ms) {
    clock_.now_ms += ms;
    life_->look();
  }
  // As a process that uses the daemon does.
  Fd share_of_lock() {
    Fd lock(::open((folder_ + '/' + kPersonalLock).c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_EQ(::flock(lock.get(), LOCK_SH | LOCK_NB), 0);
    return lock;
  }
  bool is_there(const std::string& path) const { return ::access(path.c_str(), F_OK) == 0; }

  const TemporaryDirectory directory_;
  const std::string above_ = directory_.file("above");
  const std::string folder_ = above_ + "/folder";
  PersonalNews news_{77, "a", "/s", "10.0.0.1", 4000, 5000};
  TurnedClock clock_;
  PersonalLife::Use use_;
  int ends_ = 0;
  std::unique_ptr<PersonalLife> life_;
};

TEST_F(PersonalLifeTest, EndsSomeTimeAfterItsLastUse) {
  begin();
  use_.present = 1;
  look_after(PersonalLife::kFirstUseMs);
  use_.present = 0;
  look_after(PersonalLife::kIdleMs - 1);
  use_.present = 1;
  look_after(10);
  use_.present = 0;
  look_after(PersonalLife::kIdleMs - 1);
  EXPECT_EQ(ends_, 0);
  look_after(1);
  EXPECT_EQ(ends_, 1);
  look_after(PersonalLife::kIdleMs);
  EXPECT_EQ(ends_, 1);
}

TEST_F(PersonalLifeTest, WhoHasComeAndGoneBetweenTwoLooksHasUsedIt) {
  begin();
  use_.heard = 1;
  look_after(PersonalLife::kFirstUseMs);
  look_after(PersonalLife::kIdleMs - 1);
  EXPECT_EQ(ends_, 0);
  look_after(1);
  EXPECT_EQ(ends_, 1);
}

TEST_F(PersonalLifeTest, WaitsLongerForItsFirstUse) {
  begin();
  look_after(PersonalLife::kFirstUseMs - 1);
  EXPECT_EQ(ends_, 0);
  look_after(1);
  EXPECT_EQ(ends_, 1);
}

TEST_F(PersonalLifeTest, IsUsedByWhoHasAShareOfTheLock) {
  begin();
  Fd lock = share_of_lock();
  look_after(PersonalLife::kFirstUseMs);
  EXPECT_EQ(ends_, 0);
  lock.reset();
  look_after(PersonalLife::kIdleMs - 1);
  lock = share_of_lock();  // a look leaves the lock to others
  lock.reset();
  look_after(1);
  EXPECT_EQ(ends_, 1);
}

TEST_F(PersonalLifeTest, NobodyGetsTheLockOfADaemonThatEnds) {
  begin();
  look_after(PersonalLife::kFirstUseMs);
  ASSERT_EQ(ends_, 1);
  const Fd lock(::open((folder_ + '/' + kPersonalLock).c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_NE(::flock(lock.get(), LOCK_SH | LOCK_NB), 0);
  life_.reset();
  EXPECT_EQ(::flock(lock.get(), LOCK_SH | LOCK_NB), 0);
}

TEST_F(PersonalLifeTest, TellsItsNewsToItsUserAlone) {
  begin();
  struct stat info {};
  ASSERT_EQ(::stat((folder_ + '/' + kPersonalNews).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  const std::string text = read_file(folder_ + '/' + kPersonalNews, 4096).value();
  for (const char* part : {"\"pid\": 77", "\"socket\": \"/s\"", "\"control_port\": 4000",
                           "\"page\": \"http://localhost:5000/\""})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(PersonalLifeTest, IsNamedToASecondOne) {
  begin();
  const Status taken(StatusCode::AlreadyExists, "taken"), failed(StatusCode::Internal, "failed");
  EXPECT_EQ(name_first_daemon(taken, folder_).message(),
            "your personal braidd runs already: process 77, socket " + folder_ +
                "/braidd.sock, page http://localhost:5000/");
  EXPECT_EQ(name_first_daemon(failed, folder_).message(), "failed");
  EXPECT_EQ(name_first_daemon(taken, above_).message(), "taken");
}

TEST_F(PersonalLifeTest, WhatThereIsNotIsNotTold) {
  news_.control_port.reset();
  news_.page_port.reset();
  const std::string text = to_json(news_);
  EXPECT_EQ(text.find("control_port"), std::string::npos) << text;
  EXPECT_EQ(text.find("page"), std::string::npos) << text;
}

TEST_F(PersonalLifeTest, TakesItsFolderAlong) {
  begin();
  life_.reset();
  EXPECT_FALSE(is_there(above_));
}

TEST_F(PersonalLifeTest, LeavesWhatIsNotItsOwn) {
  begin();
  const std::string kept = folder_ + "/notes";
  Fd(::open(kept.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)).reset();
  life_.reset();
  EXPECT_TRUE(is_there(kept));
  EXPECT_FALSE(is_there(folder_ + '/' + kPersonalNews));
  EXPECT_FALSE(is_there(folder_ + '/' + kPersonalLock));
}

}  // namespace
}  // namespace braid
