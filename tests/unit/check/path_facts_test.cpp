// SPDX-License-Identifier: Apache-2.0
#include "check/path_facts.h"

#include <array>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace braid {
namespace {

using Json = nlohmann::json;

PathFacts whole() {
  PathFacts facts;
  facts.asked = "b:7410";
  facts.here = {"a", "192.0.2.1", 7410, "1", 1,
                2,   3,           4,    5,   {{"eth0", "192.0.2.1", 9000, 25, true}}};
  facts.there = {"b", "192.0.2.2", 7411, "2", 6, 7, 8, 9, 10, {}};
  facts.round_trip_ns = 11;
  facts.clock_ahead_ns = -12;
  facts.clock_error_ns = 13;
  facts.to_there = {"x", "y"};
  facts.one_to_there = PathRate{"", 1, 2, 3, 4, 5, 6.5, 7.5, 8, "z"};
  return facts;
}

TEST(PathFacts, SurviveTheirJson) {
  const PathFacts facts = whole();
  const auto read = parse_path_facts(to_json(facts));
  ASSERT_TRUE(read.is_ok()) << read.status().to_string();
  EXPECT_EQ(to_json(*read), to_json(facts));
  EXPECT_EQ(read->clock_ahead_ns, -12);
  EXPECT_EQ(read->here.rails.front().mtu, 9000U);
  EXPECT_EQ(read->one_to_there->slowest_flow, 6.5);
  EXPECT_FALSE(read->all_to_here.has_value());
}

TEST(PathFacts, OfANodeThatWasNotReachedAnErrorIsEnough) {
  const auto read = parse_path_facts(R"({"asked": "b:1", "error": "refused"})");
  ASSERT_TRUE(read.is_ok());
  EXPECT_EQ(read->error, "refused");
}

TEST(PathFacts, WhatIsMissingOrOfAnotherKindIsRefused) {
  const Json good = Json::parse(to_json(whole().here));
  EXPECT_TRUE(parse_path_end(good.dump()).is_ok());
  for (const auto& [key, value] : good.items()) {
    Json bad = good;
    bad.erase(key);
    EXPECT_EQ(parse_path_end(bad.dump()).status().code(), StatusCode::Protocol) << key;
    bad[key] = Json::object();
    EXPECT_EQ(parse_path_end(bad.dump()).status().code(), StatusCode::Protocol) << key;
  }
}

TEST(PathFacts, NumbersThatDoNotFitAreRefused) {
  const std::array<std::pair<const char*, Json>, 4> numbers = {
      {{"port", 65536}, {"port", -1}, {"chunk_bytes", 1ULL << 32}, {"wall_ns", 1.5}}};
  for (const auto& [key, value] : numbers) {
    Json bad = Json::parse(to_json(whole().here));
    bad[key] = value;
    EXPECT_FALSE(parse_path_end(bad.dump()).is_ok()) << key << " " << value;
  }
  Json rate = Json::parse(to_json(PathRate{}));
  rate["slowest_flow"] = -1.0;
  EXPECT_FALSE(parse_path_rate(rate.dump()).is_ok());
}

TEST(PathFacts, WhatIsNoJsonOrTooLongIsRefused) {
  for (const std::string& text : {std::string("{"), std::string("[]"), std::string("null"),
                                  std::string(kPathJsonBytesMax + 1, ' '), std::string()}) {
    EXPECT_FALSE(parse_path_back(text).is_ok()) << text.substr(0, 10);
  }
  Json long_text = {{"control", std::string(5000, 'x')}, {"flows", ""}};
  EXPECT_FALSE(parse_path_back(long_text.dump()).is_ok());
}

}  // namespace
}  // namespace braid
