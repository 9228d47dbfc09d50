// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_report.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(WithoutSecrets, HidesWhatNamesSayIsSecret) {
  const std::pair<std::string, std::string> cases[] = {
      {"BRAID_JOB_TOKEN=abc123", "BRAID_JOB_TOKEN=(hidden)"},
      {"HTTP_PASSWORD: hunter2, next", "HTTP_PASSWORD: (hidden), next"},
      {"Authorization: Bearer abc.def-7", "Authorization: (hidden)"},
      {"client_secret = x y", "client_secret = (hidden) y"},
      {"a key of 0123456789abcdef0123456789abcdef01 here", "a key of (hidden) here"}};
  for (const auto& [line, shown] : cases) EXPECT_EQ(without_secrets(line), shown);
}

TEST(WithoutSecrets, LeavesTheRest) {
  for (const std::string line :
       {"info link to node 'b' (10.0.0.2:7410) is open", "BRAID_SOCKET=/run/braid/braidd.sock",
        "node 0123456789abcdef, set 00000000075bcd15", "page.access: /etc/braid/page.token"})
    EXPECT_EQ(without_secrets(line), line);
}

}  // namespace
}  // namespace braid
