// SPDX-License-Identifier: Apache-2.0
#include "web/web_path.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

using Parts = std::vector<std::string>;

TEST(SplitPath, GivesDecodedParts) {
  EXPECT_EQ(split_path("/"), Parts{});
  EXPECT_EQ(split_path("/metrics"), Parts{"metrics"});
  EXPECT_EQ(split_path("/a/b%2Fc%2f/d"), (Parts{"a", "b/c/", "d"}));
  EXPECT_EQ(split_path("/a/"), (Parts{"a", ""}));
  EXPECT_EQ(split_path("//"), (Parts{"", ""}));
  EXPECT_EQ(split_path("/%0A+%c3%a9"), Parts{"\n+\xc3\xa9"});
  EXPECT_EQ(split_path("/%00"), Parts{std::string(1, '\0')});
  EXPECT_EQ(split_path("/.."), Parts{".."});
}

TEST(SplitPath, RefusesWhatIsNoPath) {
  for (const char* path : {"", "metrics", "*", "/%", "/%4", "/%4g", "/% 4", "/%-1", "/a%/b"})
    EXPECT_EQ(split_path(path), std::nullopt) << path;
}

TEST(MatchPath, GivesTheNames) {
  EXPECT_EQ(match_path("/", {}), Parts{});
  EXPECT_EQ(match_path("/api/jobs/NAME/steps", {"api", "jobs", "a/b", "steps"}), Parts{"a/b"});
  EXPECT_EQ(match_path("/api/jobs/NAME/steps", {"api", "jobs", "NAME", "steps"}), Parts{"NAME"});
}

TEST(MatchPath, TakesTheWholePathAlone) {
  EXPECT_EQ(match_path("/", {"metrics"}), std::nullopt);
  EXPECT_EQ(match_path("/metrics", {"metrics", ""}), std::nullopt);
  EXPECT_EQ(match_path("/metrics", {"Metrics"}), std::nullopt);
  EXPECT_EQ(match_path("/api/jobs/NAME/steps", {"api", "jobs", "a", "b", "steps"}), std::nullopt);
  EXPECT_EQ(match_path("/api/jobs/NAME/steps", {"api", "jobs", "", "steps"}), std::nullopt);
}

TEST(QueryNumber, IsTheOneOfTheName) {
  EXPECT_EQ(query_number("steps=5", "steps", 3, 1, 20), 5u);
  EXPECT_EQ(query_number("a=1&steps=7&b", "steps", 3, 1, 20), 7u);
  EXPECT_EQ(query_number("steps=99", "steps", 3, 1, 20), 20u);
  EXPECT_EQ(query_number("steps=0", "steps", 3, 1, 20), 1u);
  for (const char* none : {"", "&", "steps", "steps=", "steps=x", "steps=-1", "steps=4294967296",
                           "steps=5 ", "Steps=5", "=5", "&&&"})
    EXPECT_EQ(query_number(none, "steps", 3, 1, 20), 3u) << none;
}

TEST(HostName, IsWithoutPortAndInSmallLetters) {
  EXPECT_EQ(host_name("LocalHost:9431"), "localhost");
  EXPECT_EQ(host_name("node-7.example"), "node-7.example");
  EXPECT_EQ(host_name("192.0.2.1:80"), "192.0.2.1");
  EXPECT_EQ(host_name("[::1]:9431"), "::1");
  EXPECT_EQ(host_name(""), "");
  EXPECT_EQ(host_name("["), "");
}

TEST(IsNumericAddress, TellsAddressesFromNames) {
  EXPECT_TRUE(is_numeric_address("127.0.0.1"));
  EXPECT_TRUE(is_numeric_address("::1"));
  for (const char* name : {"", "localhost", "127.0.0.1.example", "127.1", "0x7f.0.0.1"})
    EXPECT_FALSE(is_numeric_address(name)) << name;
}

}  // namespace
}  // namespace braid
