// SPDX-License-Identifier: Apache-2.0
#include "base/read_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace braid {
namespace {

// Opened as other files are, the test would hang.
TEST(ReadFileTest, APipeWithoutAWriterIsNotWaitedForByWhoLooksWhatItIs) {
  const std::string path = testing::TempDir() + "braid-read-file-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  struct stat info {};
  const auto content = read_file(path, 100, &info);
  EXPECT_TRUE(S_ISFIFO(info.st_mode));
  EXPECT_EQ(content.value(), "");
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace braid
