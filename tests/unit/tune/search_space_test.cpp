// SPDX-License-Identifier: Apache-2.0
#include "tune/search_space.h"

#include <set>
#include <unordered_set>

#include <gtest/gtest.h>

#include "tests/unit/tune/tuner_surfaces.h"

namespace braid {
namespace {

std::string space_error(std::vector<SearchSpace::Parameter> parameters,
                        SearchSpace::Rule rule = {}) {
  const auto space = SearchSpace::create(std::move(parameters), std::move(rule));
  return space ? "no error" : space.status().message();
}

TEST(SearchSpace, RefusesWhatIsNoSpace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {space_error({}), "0 parameters"},
      {space_error({{"", {1}}}), "has no name"},
      {space_error({{"a", {}}}), "'a': has no values"},
      {space_error({{"a", {0, 1}}}), "'a': has the value 0"},
      {space_error({{"a", {1, 1}}}), "'a': its values do not ascend"},
      {space_error({{"a", {1}}, {"a", {2}}}), "'a' stands twice"},
      {space_error({{"a", {1, 2}}}, [](auto) { return false; }), "allows none of 2"},
  };
  for (const auto& [message, expected] : cases) {
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  }
  std::vector<uint64_t> many;
  for (uint64_t i = 1; i <= SearchSpace::kValuesMax; ++i) many.push_back(i);
  EXPECT_NE(space_error({{"a", many}, {"b", many}, {"c", many}, {"d", many}})
                .find("'d' makes it more than"),
            std::string::npos);
}

TEST(SearchSpace, NumbersAllSettings) {
  const SearchSpace space = transport_space();
  std::set<Setting> ordered;
  std::unordered_set<Setting, SettingHash> hashed;
  for (uint64_t i = 0; i < space.size(); ++i) {
    EXPECT_TRUE(space.contains(space.at(i)));
    ordered.insert(space.at(i));
    hashed.insert(space.at(i));
  }
  EXPECT_EQ(space.size(), 5880u);
  EXPECT_EQ(ordered.size(), space.size());
  EXPECT_EQ(hashed.size(), space.size());
  EXPECT_EQ(*ordered.begin(), space.at(0));
}

TEST(SearchSpace, AllowsWhatTheRuleAllows) {
  const SearchSpace space = transport_space();
  const Setting good = setting_of(space, {{"unit_bytes", 1 << 20}, {"window_bytes", 1 << 20}});
  EXPECT_TRUE(space.allows(good));
  Setting bad = good;
  bad.indexes[3] = 5;  // chunks of 2 MiB
  EXPECT_TRUE(space.contains(bad));
  EXPECT_FALSE(space.allows(bad));
  EXPECT_FALSE(space.allows(Setting{{0, 0}}));
  EXPECT_FALSE(space.allows(Setting{{9, 0, 0, 0, 0}}));
}

TEST(SearchSpace, NearestIsByTheRatio) {
  const auto space = SearchSpace::create({{"a", {1, 10, 100}}, {"b", {5}}});
  ASSERT_TRUE(space);
  const auto nearest = [&](uint64_t a) {
    return space->values(space->nearest({{"a", a}}, space->at(0))).at("a");
  };
  EXPECT_EQ(nearest(0), 1u);
  EXPECT_EQ(nearest(3), 1u);
  EXPECT_EQ(nearest(4), 10u);
  EXPECT_EQ(nearest(31), 10u);
  EXPECT_EQ(nearest(32), 100u);
  EXPECT_EQ(nearest(1000000), 100u);
}

TEST(SearchSpace, NearestKeepsWhatIsNotNamedAndPassesOverUnknownNames) {
  const SearchSpace space = transport_space();
  const Setting otherwise = setting_of(space, {{"streams", 4}, {"unit_bytes", 4 << 20}});
  const Setting found = space.nearest({{"flows_per_link", 8}, {"colour", 3}}, otherwise);
  EXPECT_EQ(space.values(found).at("flows_per_link"), 8u);
  EXPECT_EQ(space.values(found).at("streams"), 4u);
  EXPECT_EQ(space.values(found).at("unit_bytes"), 4u << 20);
}

TEST(SearchSpace, NearestIsAllowed) {
  const SearchSpace space = transport_space();
  const Setting found = space.nearest({{"unit_bytes", 512 << 10}, {"chunk_bytes", 1 << 20}},
                                      setting_of(space, {{"window_bytes", 8 << 20}}));
  EXPECT_TRUE(space.allows(found));
  EXPECT_EQ(space.values(found).at("unit_bytes"), 512u << 10) << "the lower of two equal ones";
  EXPECT_EQ(space.values(found).at("chunk_bytes"), 512u << 10);
}

TEST(SearchSpace, ValuesAndNearestAreInverse) {
  const SearchSpace space = transport_space();
  for (uint64_t i = 0; i < space.size(); i += 7) {
    if (!space.allows(space.at(i))) continue;
    EXPECT_EQ(setting_of(space, space.values(space.at(i))), space.at(i));
  }
}

TEST(SearchSpace, CoordinatesAreLogarithmicAndLeaveOutPinnedParameters) {
  const auto space = SearchSpace::create({{"a", {1, 10, 100}}, {"pinned", {5}}, {"b", {2, 4}}});
  ASSERT_TRUE(space);
  const std::vector<double> coordinates = space->coordinates(Setting{{1, 0, 1}});
  ASSERT_EQ(coordinates.size(), 2u);
  EXPECT_DOUBLE_EQ(coordinates[0], 0.5);
  EXPECT_DOUBLE_EQ(coordinates[1], 1);
}

}  // namespace
}  // namespace braid
