// SPDX-License-Identifier: Apache-2.0
#include "config/secret_file.h"
#include "temporary_file.h"

namespace braid {
namespace {

TEST(PageToken, IsTheTrimmedContentOfASecretFile) {
  const TemporaryFile file("0123456789abcdef\n");
  const auto token = load_page_token(file.path()).value();
  EXPECT_EQ(std::string(token.begin(), token.end()), "0123456789abcdef");
  const TemporaryFile open_file("0123456789abcdef", 0640);
  const Status refused = load_page_token(open_file.path()).status();
  EXPECT_EQ(refused.code(), StatusCode::PermissionDenied);
  EXPECT_EQ(refused.message().find("page.access: "), 0u);
}

TEST(PageToken, MustGoIntoAHeader) {
  for (const char* content :
       {"0123456789 abcdef", "0123456789\nabcdef", "0123456789\xc3\xa9xxxxxx"}) {
    const TemporaryFile file(content);
    EXPECT_NE(load_page_token(file.path()).status().message().find("other characters"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace braid
