// SPDX-License-Identifier: Apache-2.0
#include "planning/plan_set.h"

#include <functional>

#include <gtest/gtest.h>

#include "planning/plan_testing.h"

namespace braid {
namespace {

using testing::groups_of;
using testing::hash_of;
using testing::names_of;
using testing::planned;
using testing::planned_tensors;
using testing::test_job;
using GroupNames = std::vector<std::vector<std::string>>;

constexpr uint64_t kMiB = (1 << 20) / 4;  // elements

TEST(PlanSetTest, BeginsWithASmallGroupAndThenLargerOnes) {
  PlanSet set(test_job(), 1, planned_tensors(20, kMiB / 2));
  const GroupNames names = names_of(set.current());
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[0], (std::vector<std::string>{"t0", "t1"}));
  EXPECT_EQ(names[1].size(), 16u);
  EXPECT_EQ(names[1].front(), "t2");
  EXPECT_EQ(names[2], (std::vector<std::string>{"t18", "t19"}));
  EXPECT_EQ(set.current().number, 0u);
  EXPECT_EQ(set.current().from_step, 0u);
}

TEST(PlanSetTest, TheFirstPlanFollowsBackwardAndThenTheOrderOfRegistration) {
  PlanSet set(test_job(), 1,
              {planned("late", 1, DataType::Float32, 7), planned("x", 1, DataType::Float32, 2),
               planned("first", 1), planned("y", 1, DataType::Float32, 2)});
  EXPECT_EQ(names_of(set.current()), (GroupNames{{"first", "x", "y", "late"}}));
  EXPECT_EQ(set.index_of(test_job().of_name("late")), 3u);
  EXPECT_EQ(set.index_of(hash_of(0)), std::nullopt);
}

TEST(PlanSetTest, TheSameTensorsGiveTheSameGroupsOnEveryNode) {
  std::vector<PlanSet::Tensor> tensors;
  for (uint32_t i = 0; i < 300; ++i) {
    tensors.push_back(planned("layer." + std::to_string(i), 1 + i * i * 37 % 500'000,
                              i % 17 == 0 ? DataType::Float16 : DataType::Float32, 300 - i));
  }
  const PlanSet here(test_job(), 5, tensors), there(test_job(), 5, tensors);
  ASSERT_EQ(here.current().groups.size(), there.current().groups.size());
  for (size_t i = 0; i < here.current().groups.size(); ++i) {
    EXPECT_EQ(here.current().groups[i]->hash, there.current().groups[i]->hash);
    EXPECT_EQ(here.current().groups[i]->count, there.current().groups[i]->count);
  }
  EXPECT_EQ(names_of(here.current()), names_of(there.current()));
}

TEST(PlanSetTest, KnowsItsTensorsByContent) {
  const std::vector<PlanSet::Tensor> tensors = {planned("a", 3, DataType::Float32, 1),
                                                planned("b", 4), planned("c", 5)};
  const PlanSet set(test_job(), 1, tensors);
  EXPECT_TRUE(PlanSet::are_of(set.tensors(), tensors));
  const auto is_of_with = [&](const std::function<void(PlanSet::Tensor&)>& change) {
    std::vector<PlanSet::Tensor> others = tensors;
    change(others[1]);
    return PlanSet::are_of(set.tensors(), others);
  };
  EXPECT_FALSE(is_of_with([](PlanSet::Tensor& tensor) { tensor.count = 40; }));
  EXPECT_FALSE(is_of_with([](PlanSet::Tensor& tensor) { tensor.dtype = DataType::Float16; }));
  EXPECT_FALSE(is_of_with([](PlanSet::Tensor& tensor) { tensor.backward_order = 1; }));
  // A name of the same hash.
  EXPECT_FALSE(is_of_with(
      [](PlanSet::Tensor& tensor) { tensor.name = std::make_shared<const std::string>("x"); }));
  EXPECT_FALSE(PlanSet::are_of(set.tensors(), {tensors[0], tensors[1]}));
  EXPECT_FALSE(PlanSet::are_of(set.tensors(), {tensors[0], tensors[2], tensors[1]}));
}

TEST(PlanSetTest, AGroupHasOneDtypeAndOneCodec) {
  PlanSet set(test_job(), 1,
              {planned("a", 10), planned("b", 10), planned("c", 10, DataType::Float16),
               planned("d", 10), planned("e", 10, DataType::Float64)});
  EXPECT_EQ(names_of(set.current()), (GroupNames{{"a", "b", "d"}, {"c"}, {"e"}}));
  EXPECT_EQ(set.current().groups[1]->dtype, DataType::Float16);
  const auto coded = [](const char* name, uint64_t count, const char* codec) {
    PlanSet::Tensor tensor = planned(name, count);
    tensor.codec = *parse_codec_spec(codec);
    return tensor;
  };
  PlanSet mixed(test_job(), 1,
                {coded("a", 10, "int8"), planned("b", 20), coded("c", 30, "int8"),
                 coded("d", 40, "int8:block=64"), coded("e", 50, "int8")});
  EXPECT_EQ(names_of(mixed.current()), (GroupNames{{"a", "c", "e"}, {"b"}, {"d"}}));
  ASSERT_EQ(mixed.codecs().size(), 2u);
  EXPECT_EQ(mixed.coded_elements(0), 90u);
  EXPECT_EQ(mixed.coded_elements(1), 40u);
  EXPECT_FALSE(mixed.coded(1).has_value());
  EXPECT_EQ(mixed.coded(4)->first_element, 40u);
  EXPECT_EQ(mixed.current().groups[0]->members[1].first_element, 10u);
  EXPECT_FALSE(mixed.check({{{mixed.tensors()[0].hash, mixed.tensors()[1].hash},
                             {mixed.tensors()[2].hash},
                             {mixed.tensors()[3].hash},
                             {mixed.tensors()[4].hash}}}));
}

TEST(PlanSetTest, ATensorThatIsLargerThanAGroupStandsAlone) {
  PlanSet set(
      test_job(), 1,
      {planned("huge", 3 * kMiB), planned("a", 1), planned("huger", 9 * kMiB), planned("b", 1)});
  EXPECT_EQ(names_of(set.current()), (GroupNames{{"huge"}, {"a"}, {"huger"}, {"b"}}));
}

TEST(PlanSetTest, MembersLieOneAfterTheOther) {
  PlanSet set(test_job(), 1,
              {planned("a", 3, DataType::Float64), planned("b", 5, DataType::Float64),
               planned("c", 0, DataType::Float64), planned("d", 1, DataType::Float64)});
  ASSERT_EQ(set.current().groups.size(), 1u);
  const TensorGroup& group = *set.current().groups[0];
  EXPECT_EQ(group.count, 9u);
  EXPECT_EQ(group.dtype, DataType::Float64);
  const uint64_t offsets[] = {0, 24, 64, 64};
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(group.members[i].offset, offsets[i]);
    EXPECT_EQ(set.find(i, 0).member, i);
    EXPECT_EQ(set.find(i, 0).form->group.get(), &group);
  }
}

TEST(PlanSetTest, TheHashNamesMembersCountsAndOrder) {
  PlanSet set(test_job(), 1, planned_tensors(3));
  PlanSet larger(test_job(), 1, planned_tensors(3, 101));
  const auto hash = [](PlanSet& one, const std::vector<std::vector<uint32_t>>& numbers) {
    const uint32_t number = one.current().number + 1;
    one.add(number, number, groups_of(numbers));
    return one.current().groups[0]->hash;
  };
  const uint64_t all = hash(set, {{0, 1, 2}});
  EXPECT_NE(all, 0u);
  EXPECT_NE(all, hash(set, {{0, 2, 1}}));
  EXPECT_NE(all, hash(set, {{0, 1}, {2}}));
  EXPECT_EQ(all, hash(set, {{0, 1, 2}}));
  EXPECT_NE(all, hash(larger, {{0, 1, 2}}));
}

TEST(PlanSetTest, EachStepFollowsThePlanThatHeldForIt) {
  PlanSet set(test_job(), 1, planned_tensors(3));
  set.add(1, 10, groups_of({{2, 0}, {1}}));
  set.add(4, 20, groups_of({{0}, {1}, {2}}));
  EXPECT_EQ(set.current().number, 4u);
  for (const uint64_t step : {0, 9}) EXPECT_EQ(set.find(1, step).form->members(), 3u);
  for (const uint64_t step : {10, 19}) {
    EXPECT_FALSE(set.find(1, step).form->is_merged());
    EXPECT_EQ(set.find(0, step).form->plan, 1u);
    EXPECT_EQ(set.find(0, step).member, 1u);
    EXPECT_EQ(set.find(2, step).member, 0u);
    EXPECT_EQ(set.plan_of(step).number, 1u);
  }
  EXPECT_FALSE(set.find(0, 20).form->is_merged());
  EXPECT_FALSE(set.find(0, UINT64_MAX).form->is_merged());
}

TEST(PlanSetTest, KnowsGroupsInWhateverOrder) {
  PlanSet set(test_job(), 1, planned_tensors(5, 10));
  set.add(1, 10, groups_of({{0, 1}, {2, 3, 4}}));
  EXPECT_TRUE(set.merges_as(groups_of({{0, 1}, {2, 3, 4}})));
  EXPECT_TRUE(set.merges_as(groups_of({{4, 2, 3}, {1, 0}})));
  EXPECT_FALSE(set.merges_as(groups_of({{0, 2}, {1, 3, 4}})));
  EXPECT_FALSE(set.merges_as(groups_of({{0, 1}, {2, 3}, {4}})));
  EXPECT_FALSE(set.merges_as(groups_of({{0, 1, 2, 3, 4}})));
  set.add(2, 20, groups_of({{0}, {1}, {2, 3, 4}}));
  EXPECT_FALSE(set.merges_as(groups_of({{0, 1}, {2, 3, 4}})))
      << "these were those of the plan before";
}

TEST(PlanSetTest, OnlyTheLastPlansAreKept) {
  PlanSet set(test_job(), 1, planned_tensors(2));
  for (uint32_t i = 1; i < PlanSet::kPlansKept; ++i) set.add(i, 10 * i, groups_of({{0}, {1}}));
  EXPECT_TRUE(set.find(0, 0).form->is_merged());  // the first one is still there
  set.add(PlanSet::kPlansKept, 1000, groups_of({{1, 0}}));
  EXPECT_EQ(set.plan_of(0).number, 1u);  // the oldest that is
  EXPECT_EQ(set.plan_of(999).number, PlanSet::kPlansKept - 1);
  EXPECT_EQ(set.plan_of(1000).number, PlanSet::kPlansKept);
}

TEST(PlanSetTest, APlanHoldsEveryTensorOnce) {
  std::vector<PlanSet::Tensor> tensors = planned_tensors(3);
  tensors.push_back(planned("t3", 100, DataType::Float16, 3));
  const PlanSet set(test_job(), 1, tensors);
  EXPECT_TRUE(set.check(groups_of({{0, 1, 2}, {3}})).is_ok());
  EXPECT_TRUE(set.check(groups_of({{3}, {2}, {1, 0}})).is_ok());
  const auto refused = [&](const std::vector<std::vector<uint32_t>>& numbers) {
    const Status checked = set.check(groups_of(numbers));
    EXPECT_TRUE(checked.is_ok() || checked.code() == StatusCode::Protocol);
    return checked.message();
  };
  constexpr const char* kTwice = "a plan names a tensor twice or one that it is not for";
  EXPECT_EQ(refused({{0, 1, 0, 2}, {3}}), kTwice);
  EXPECT_EQ(refused({{0, 1}, {1, 2}, {3}}), kTwice);
  EXPECT_EQ(refused({{0, 1, 2}, {3}, {4}}), kTwice);
  EXPECT_EQ(refused({{0, 2}, {3}}), "a plan leaves out tensors that it is for");
  EXPECT_EQ(refused({}), "a plan leaves out tensors that it is for");
  EXPECT_EQ(refused({{0, 1, 2, 3}}), "a plan merges tensors of different dtypes or codecs");
  EXPECT_EQ(refused({{0, 1, 2}, {}, {3}}), "a plan has a group without tensors");
}

}  // namespace
}  // namespace braid
