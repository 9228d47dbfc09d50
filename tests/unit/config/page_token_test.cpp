// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "config/secret_file.h"
#include "temporary_file.h"

namespace braid {
namespace {

TEST(PageToken, IsTheTrimmedContent) {
  const TemporaryFile file("0123456789abcdef\n");
  const auto token = load_page_token(file.path()).value();
  EXPECT_EQ(std::string(token.begin(), token.end()), "0123456789abcdef");
}

TEST(PageToken, MustGoIntoAHeader) {
  for (const char* content :
       {"0123456789 abcdef", "0123456789\nabcdef", "0123456789\xc3\xa9xxxxxx"}) {
    const TemporaryFile file(content);
    EXPECT_NE(load_page_token(file.path()).status().message().find("other characters"),
              std::string::npos);
  }
}

TEST(PageToken, AFileOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const TemporaryFile file("0123456789abcdef");
  ASSERT_EQ(::chown(file.path().c_str(), 65534, 65534), 0);
  EXPECT_EQ(load_page_token(file.path()).status().code(), StatusCode::PermissionDenied);
}

TEST(PageToken, AFileThatIsNoSecretIsRefused) {
  const TemporaryFile open_file("0123456789abcdef", 0640);
  EXPECT_EQ(load_page_token(open_file.path()).status().code(), StatusCode::PermissionDenied);
  const TemporaryFile short_file("short");
  EXPECT_NE(load_page_token(short_file.path()).status().message().find("use 16 or more"),
            std::string::npos);
  EXPECT_EQ(load_page_token("/nonexistent/token").status().message(),
            "page.access: /nonexistent/token: there is no such file; make one with (umask 077; "
            "openssl rand -hex 32 > /nonexistent/token)");
}

}  // namespace
}  // namespace braid
