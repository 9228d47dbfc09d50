// SPDX-License-Identifier: Apache-2.0
#include "config/cluster_key.h"

#include <unistd.h>

#include "temporary_file.h"

namespace braid {
namespace {

std::string text(const std::vector<uint8_t>& key) { return {key.begin(), key.end()}; }

TEST(ClusterKey, IsTheTrimmedContent) {
  const TemporaryFile file(" \n0123456789abcdef\r\n\n");
  EXPECT_EQ(text(load_cluster_key(file.path()).value()), "0123456789abcdef");
}

TEST(ClusterKey, MayBeBytesOfAnyKind) {
  constexpr char kSecret[] = "\x01\x00\xff key with blanks";
  const std::string secret(kSecret, sizeof(kSecret) - 1);  // with the zero in its middle
  const TemporaryFile file(secret);
  EXPECT_EQ(text(load_cluster_key(file.path()).value()), secret);
}

TEST(ClusterKey, NoPathIsNoKey) { EXPECT_TRUE(load_cluster_key("").value().empty()); }

TEST(ClusterKey, AMissingFileIsExplained) {
  const Status status = load_cluster_key("/nonexistent/key").status();
  EXPECT_EQ(status.code(), StatusCode::NotFound);
  EXPECT_EQ(status.message(),
            "control.cluster_key_file: /nonexistent/key: there is no such file; make one with "
            "(umask 077; openssl rand -hex 32 > /nonexistent/key), and copy it to all nodes");
}

TEST(ClusterKey, AnOpenFileIsRefusedWithTheCommandThatClosesIt) {
  for (const mode_t mode : {0640, 0604, 0620, 0666}) {
    const TemporaryFile file("0123456789abcdef", mode);
    const Status status = load_cluster_key(file.path()).status();
    EXPECT_EQ(status.code(), StatusCode::PermissionDenied);
    EXPECT_NE(status.message().find("run: chmod 600 " + file.path()), std::string::npos);
  }
}

TEST(ClusterKey, AFileOfAnotherUserIsRefusedWithTheCommandThatMakesItRight) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const TemporaryFile file("0123456789abcdef");
  ASSERT_EQ(::chown(file.path().c_str(), 65534, 0), 0);
  const Status status = load_cluster_key(file.path()).status();
  EXPECT_EQ(status.code(), StatusCode::PermissionDenied);
  for (const std::string& part :
       {std::string("belongs to user 65534"), "run: chown 0 " + file.path()})
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(ClusterKey, AShortKeyIsRefused) {
  for (const char* content : {"", "\n", "   0123456789abcde   \n"}) {
    const TemporaryFile file(content);
    EXPECT_NE(load_cluster_key(file.path()).status().message().find("use 16 or more"),
              std::string::npos);
  }
}

TEST(ClusterKey, WhatIsNoFileOfThatSizeIsRefused) {
  const TemporaryFile large(std::string(4097, 'k'));
  EXPECT_FALSE(load_cluster_key(large.path()).is_ok());
  EXPECT_FALSE(load_cluster_key(large.directory()).is_ok());
  EXPECT_NE(load_cluster_key("/dev/null").status().message().find("not a regular file"),
            std::string::npos);
}

}  // namespace
}  // namespace braid
