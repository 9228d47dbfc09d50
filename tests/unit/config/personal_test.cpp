// SPDX-License-Identifier: Apache-2.0
#include "config/personal.h"

#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errors_testing.h"
#include "ipc/temporary_directory.h"

namespace braid {
namespace {

using testing::is_error;

constexpr uid_t kSomebody = 4711;

TEST(PersonalFolder, IsInTheRuntimeDirectoryIfThatIsTheUsersAlone) {
  const TemporaryDirectory directory;
  const std::string runtime = directory.path();
  EXPECT_EQ(personal_folder(runtime.c_str(), ::geteuid()), runtime + "/braid");
  EXPECT_EQ(personal_folder(runtime.c_str(), kSomebody), "/tmp/braid-4711");
  ASSERT_EQ(::chmod(runtime.c_str(), 0750), 0);
  const std::string in_tmp = "/tmp/braid-" + std::to_string(::geteuid());
  EXPECT_EQ(personal_folder(runtime.c_str(), ::geteuid()), in_tmp);
}

TEST(PersonalFolder, IsInTmpWithoutARuntimeDirectory) {
  EXPECT_EQ(personal_folder(nullptr, kSomebody), "/tmp/braid-4711");
  EXPECT_EQ(personal_folder("", kSomebody), "/tmp/braid-4711");
  EXPECT_EQ(personal_folder("/run/user/nobody-has-this", kSomebody), "/tmp/braid-4711");
}

TEST(PersonalFolder, IsMadeForItsUserAlone) {
  const TemporaryDirectory directory;
  const std::string folder = directory.file("mine");
  for (int time = 0; time < 2; ++time) {  // made, and found
    ASSERT_TRUE(make_personal_folder(folder).is_ok());
    struct stat info {};
    ASSERT_EQ(::stat(folder.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
  }
  EXPECT_TRUE(is_error(make_personal_folder(directory.file("no/such")), StatusCode::NotFound,
                       {"cannot make the folder", "no/such"}));
}

TEST(PersonalFolder, OfSomebodyElseIsRefused) {
  const TemporaryDirectory directory;
  const std::string folder = directory.file("theirs");
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  if (::chown(folder.c_str(), kSomebody, kSomebody) != 0) GTEST_SKIP() << "needs root";
  EXPECT_TRUE(is_error(make_personal_folder(folder), StatusCode::PermissionDenied,
                       {"belongs to user 4711", "XDG_RUNTIME_DIR"}));
}

TEST(PersonalFolder, ThatIsALinkAFileOrOpenToOthersIsRefused) {
  const TemporaryDirectory directory;
  const std::string link = directory.file("link"), open = directory.file("open");
  ASSERT_EQ(::symlink(directory.path().c_str(), link.c_str()), 0);
  EXPECT_TRUE(is_error(make_personal_folder(link), StatusCode::PermissionDenied, {"is a link"}));
  ASSERT_EQ(::mkdir(open.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(open.c_str(), 0755), 0);
  EXPECT_TRUE(is_error(make_personal_folder(open), StatusCode::PermissionDenied,
                       {"open to others (mode 0755)", "chmod 700 " + open}));
  EXPECT_TRUE(is_error(make_personal_folder("/dev/null"), StatusCode::PermissionDenied,
                       {"is a file and no folder"}));
}

}  // namespace
}  // namespace braid
