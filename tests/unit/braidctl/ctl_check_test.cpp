// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_check.h"

#include <array>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace braid {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(CtlCheck, ReadsNodes) {
  const std::array<std::pair<const char*, std::pair<const char*, uint16_t>>, 6> nodes = {
      {{"node-7", {"node-7", 0}},
       {"node-7:7411", {"node-7", 7411}},
       {"192.0.2.7:1", {"192.0.2.7", 1}},
       {"2001:db8::7", {"2001:db8::7", 0}},
       {"[2001:db8::7]", {"2001:db8::7", 0}},
       {"[2001:db8::7]:7410", {"2001:db8::7", 7410}}}};
  for (const auto& [text, right] : nodes) {
    const auto peer = parse_peer(text);
    ASSERT_TRUE(peer.is_ok()) << text;
    EXPECT_EQ(peer->host, right.first) << text;
    EXPECT_EQ(peer->port, right.second) << text;
  }
}

TEST(CtlCheck, RefusesWhatIsNoNode) {
  for (const char* text : {"", ":7410", "a:", "a:0", "a:65536", "a:x", "a:7410x", "http://a:9",
                           "[::1", "[::1]7410", "[::1]:", "a b", "me@a"})
    EXPECT_THAT(parse_peer(text).status().message(), HasSubstr("is no node; right is such as"))
        << text;
}

CheckedPeer checked(const std::string& name, bool is_good) {
  CheckedPeer peer{name, {}, {{"reach", true, "there"}, {"mtu", is_good, "as\nit is"}}};
  peer.facts.asked = name;
  return peer;
}

TEST(CtlCheck, TheVerdictIsTheLastLine) {
  EXPECT_THAT(check_text({checked("b", true), checked("c", true)}),
              EndsWith("\nverdict: good, 2 of 2 nodes are ready for a job with this one\n"));
  EXPECT_THAT(check_text({checked("b", true), checked("c", false)}),
              EndsWith("\nverdict: bad, 1 of 2 nodes: c; the lines with BAD say what to do\n"));
}

TEST(CtlCheck, NobodysTextMakesLines) {
  EXPECT_THAT(check_text({checked("b", false)}), HasSubstr("  mtu       BAD  as\\nit is\n"));
}

TEST(CtlCheck, TheJsonHasTheVerdictOfAllAndOfEach) {
  const auto json = nlohmann::json::parse(check_json({checked("b", true), checked("c", false)}));
  EXPECT_FALSE(json.at("good").get<bool>());
  EXPECT_TRUE(json.at("peers").at(0).at("good").get<bool>());
  EXPECT_FALSE(json.at("peers").at(1).at("good").get<bool>());
  EXPECT_EQ(json.at("peers").at(1).at("checks").at(1).at("check"), "mtu");
  EXPECT_EQ(json.at("peers").at(1).at("facts").at("asked"), "c");
}

}  // namespace
}  // namespace braid
