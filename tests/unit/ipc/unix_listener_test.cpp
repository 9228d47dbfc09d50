// SPDX-License-Identifier: Apache-2.0
#include "ipc/unix_listener.h"

#include <fstream>

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temporary_directory.h"
#include "unix_socket.h"

namespace braid {
namespace {

class UnixListenerTest : public ::testing::Test {
 protected:
  Status failure(const std::string& path, const std::string& group = "", uint32_t mode = 0600) {
    auto listener = UnixListener::create(path, group, mode);
    EXPECT_FALSE(listener.is_ok());
    return listener ? Status() : listener.status();
  }
  static bool has(const Status& status, const std::string& part) {
    return status.message().find(part) != std::string::npos;
  }
  bool connects() const { return connected_socket(path_).is_valid(); }

  TemporaryDirectory directory_;
  std::string path_ = directory_.file("braidd.sock");
};

TEST_F(UnixListenerTest, ListensWithTheModeAndTheGroupAndGoesAway) {
  const group* own = ::getgrgid(::getgid());
  ASSERT_NE(own, nullptr);
  auto listener = UnixListener::create(path_, own->gr_name, 0660).value();
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0660u);
  EXPECT_EQ(info.st_gid, ::getgid());
  EXPECT_TRUE(connects());
  listener.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(UnixListenerTest, MakesTheLastDirectoryOnly) {
  auto listener = UnixListener::create(directory_.file("braid/braidd.sock"), "", 0600);
  EXPECT_TRUE(listener.is_ok()) << listener.status().message();
  const Status status = failure(directory_.file("no/such/braidd.sock"));
  EXPECT_TRUE(has(status, directory_.file("no/such"))) << status.message();
  EXPECT_TRUE(has(status, "client.socket")) << status.message();
}

TEST_F(UnixListenerTest, ReplacesTheSocketOfADeadDaemon) {
  listening_socket(path_).reset();
  ASSERT_TRUE(std::filesystem::exists(path_));
  ASSERT_FALSE(connects());
  auto listener = UnixListener::create(path_, "", 0600);
  ASSERT_TRUE(listener.is_ok()) << listener.status().message();
  EXPECT_TRUE(connects());
}

TEST_F(UnixListenerTest, RefusesASocketThatIsInUse) {
  auto listener = UnixListener::create(path_, "", 0600);
  ASSERT_TRUE(listener.is_ok()) << listener.status().message();
  const Status status = failure(path_);
  EXPECT_EQ(status.code(), StatusCode::AlreadyExists);
  EXPECT_TRUE(has(status, "another braidd is listening")) << status.message();
  EXPECT_TRUE(has(status, path_)) << status.message();
  EXPECT_TRUE(connects());
}

TEST_F(UnixListenerTest, RefusesToReplaceAFile) {
  std::ofstream(path_) << "precious";
  const Status status = failure(path_);
  EXPECT_EQ(status.code(), StatusCode::AlreadyExists);
  EXPECT_TRUE(has(status, "not a socket")) << status.message();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixListenerTest, AnUnknownGroupLeavesNothingBehind) {
  const Status status = failure(path_, "no-such-group-of-braid");
  EXPECT_EQ(status.code(), StatusCode::NotFound);
  EXPECT_TRUE(has(status, "'no-such-group-of-braid'")) << status.message();
  EXPECT_TRUE(has(status, "client.group")) << status.message();
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(UnixListenerTest, RefusesPathsThatAreTooLong) {
  EXPECT_EQ(failure(directory_.file(std::string(200, 'x'))).code(), StatusCode::InvalidArgument);
  EXPECT_EQ(failure("").code(), StatusCode::InvalidArgument);
}

// The socket is made under another name, which is nobody's business.
TEST_F(UnixListenerTest, ASocketThatCannotBeMadeIsNamedAsConfigured) {
  const Status status = failure("/proc/braidd.sock");
  EXPECT_TRUE(has(status, "cannot make the socket '/proc/braidd.sock' (set client.socket"))
      << status.message();
  EXPECT_FALSE(has(status, std::to_string(::getpid()))) << status.message();
}

TEST_F(UnixListenerTest, DoesNotRemoveItsSuccessorsSocket) {
  auto first = UnixListener::create(path_, "", 0600).value();
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  auto second = UnixListener::create(path_, "", 0600);
  ASSERT_TRUE(second.is_ok()) << second.status().message();
  first.reset();
  EXPECT_TRUE(connects());
}

}  // namespace
}  // namespace braid
