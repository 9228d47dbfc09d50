// SPDX-License-Identifier: Apache-2.0
// Tensors whose codec has ended.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "planning/plan_set.h"
#include "planning/plan_testing.h"

namespace braid {
namespace {

using testing::groups_of;
using testing::hash_of;
using testing::names_of;
using testing::planned_tensors;
using testing::test_job;
using GroupNames = std::vector<std::vector<std::string>>;

const CodecSpec kInt8 = default_codec_spec(CodecKind::Int8);

// 't0' to 't3' have int8, 't4' has none.
PlanSet coded_set() {
  auto tensors = planned_tensors(5);
  for (uint32_t i = 0; i < 4; ++i) tensors[i].codec = kInt8;
  return PlanSet(test_job(), 1, tensors);
}

std::vector<CodecKind> kinds_in(const PlanSet& set, uint64_t step) {
  std::vector<CodecKind> kinds;
  for (uint32_t i = 0; i < set.tensors().size(); ++i) kinds.push_back(set.codec_of(i, step).kind);
  return kinds;
}

constexpr CodecKind kNo = CodecKind::None, kYes = CodecKind::Int8;

TEST(PlanSetPlainTest, BeginsWithItsStep) {
  PlanSet set = coded_set();
  set.add_plain(1, 10, std::vector{hash_of(0), hash_of(1), hash_of(2), hash_of(3)});
  EXPECT_EQ(kinds_in(set, 9), (std::vector{kYes, kYes, kYes, kYes, kNo}));
  EXPECT_EQ(kinds_in(set, 10), std::vector(5, kNo));
  EXPECT_EQ(set.current_codec(0).kind, kNo);
  EXPECT_EQ(set.tensors()[0].codec, kInt8) << "what was registered";
  EXPECT_EQ(set.current().number, 1u);
  EXPECT_EQ(names_of(set.plan_of(10)), names_of(set.plan_of(9))) << "the groups stay";
  EXPECT_EQ(set.find(1, 10).form->group->hash, set.find(1, 9).form->group->hash);
}

TEST(PlanSetPlainTest, GroupsThatHoldSomeOfThemAreParted) {
  PlanSet set = coded_set();
  set.add_plain(1, 10, std::vector{hash_of(2), hash_of(1)});
  EXPECT_EQ(names_of(set.current()), (GroupNames{{"t0", "t3"}, {"t1", "t2"}, {"t4"}}));
  EXPECT_EQ(kinds_in(set, 10), (std::vector{kYes, kNo, kNo, kYes, kNo}));
  const auto member = set.find(3, 10);
  EXPECT_EQ(member.member, 1u);
  EXPECT_EQ(member.form->group->members[1].first_element, 300u) << "its place in the memory stays";
  EXPECT_EQ(names_of(set.plan_of(9)), (GroupNames{{"t0", "t1", "t2", "t3"}, {"t4"}}));
}

TEST(PlanSetPlainTest, StaysSoWhenGroupsOrSettingsChange) {
  PlanSet set = coded_set();
  set.add_plain(1, 10, std::vector{hash_of(0)});
  TransferSettings settings;
  settings.streams = 7;
  set.add(2, 20, settings, true);
  EXPECT_EQ(kinds_in(set, 20), (std::vector{kNo, kYes, kYes, kYes, kNo}));
  set.add(3, 30, groups_of({{4, 0}, {1, 2}, {3}}));
  EXPECT_EQ(kinds_in(set, 30), (std::vector{kNo, kYes, kYes, kYes, kNo}));
  set.add_plain(4, 40, std::vector{hash_of(3)});
  EXPECT_EQ(kinds_in(set, 40), (std::vector{kNo, kYes, kYes, kNo, kNo}));
  EXPECT_EQ(*set.current().settings, settings);
}

TEST(PlanSetPlainTest, KeepsTheSettingsAndTheirReports) {
  PlanSet set = coded_set();
  TransferSettings settings;
  settings.streams = 7;
  set.add(1, 10, settings, true);
  set.add_plain(2, 20, std::vector{hash_of(0)});
  EXPECT_EQ(*set.current().settings, settings);
  EXPECT_TRUE(set.current().reports_steps);
}

TEST(PlanSetPlainTest, PlansMergeWhatHasTheSameCodecNow) {
  PlanSet set = coded_set();
  const auto with_plain = groups_of({{0, 4}, {1, 2, 3}}), before = groups_of({{0, 1, 2, 3}, {4}});
  EXPECT_FALSE(set.check(with_plain).is_ok());
  EXPECT_TRUE(set.check(before).is_ok());
  set.add_plain(1, 10, std::vector{hash_of(0)});
  EXPECT_TRUE(set.check(with_plain).is_ok());
  EXPECT_FALSE(set.check(before).is_ok());
}

TEST(PlanSetPlainTest, ItIsForTensorsThatHaveACodec) {
  PlanSet set = coded_set();
  EXPECT_TRUE(set.check_plain(std::vector{hash_of(3), hash_of(0)}).is_ok());
  EXPECT_FALSE(set.check_plain(std::vector{hash_of(0), hash_of(4)}).is_ok());
  EXPECT_FALSE(set.check_plain(std::vector{hash_of(0), hash_of(77)}).is_ok());
}

TEST(PartGroups, KeepsTheOrderAndTheFirstTensorFirst) {
  const std::vector<std::vector<uint64_t>> groups = {{1, 2, 3}, {4}, {6, 5}};
  const auto parted = part_groups(
      groups, [](uint64_t tensor) { return tensor == 1 || tensor == 3 || tensor == 5; });
  EXPECT_EQ(parted, (std::vector<std::vector<uint64_t>>{{1, 3}, {2}, {4}, {6}, {5}}));
}

}  // namespace
}  // namespace braid
