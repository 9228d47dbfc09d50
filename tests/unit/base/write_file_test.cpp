// SPDX-License-Identifier: Apache-2.0
#include "base/write_file.h"

#include <gtest/gtest.h>

#include "base/read_file.h"

namespace braid {
namespace {

TEST(WriteFile, ReplacesWhatWasThere) {
  const std::string path = testing::TempDir() + "braid-write-file";
  ASSERT_TRUE(write_file(path, "something long"));
  ASSERT_TRUE(write_file(path, std::string("a\0b", 3)));
  EXPECT_EQ(*read_file(path, 100), std::string("a\0b", 3));
  std::remove(path.c_str());
}

TEST(WriteFile, OthersReadItWhereTheyShould) {
  const std::string path = testing::TempDir() + "braid-write-file";
  const auto mode = [&path] {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777u : 0;
  };
  const mode_t before = ::umask(022);
  ASSERT_TRUE(write_file(path, "for all"));
  EXPECT_EQ(mode(), 0644u);
  ASSERT_TRUE(write_file(path, "for me", FileReaders::Owner));
  EXPECT_EQ(mode(), 0600u);
  ::umask(before);
  std::remove(path.c_str());
}

TEST(WriteFile, NamesThePath) {
  const Status status = write_file("/nonexistent/file", "");
  EXPECT_EQ(status.code(), StatusCode::NotFound);
  EXPECT_NE(status.message().find("/nonexistent/file: cannot be written: No such file"),
            std::string::npos)
      << status.message();
}

TEST(WriteFile, AFullDiskIsAnError) { EXPECT_FALSE(write_file("/dev/full", "content")); }

}  // namespace
}  // namespace braid
