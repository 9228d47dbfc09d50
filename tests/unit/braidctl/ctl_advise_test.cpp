// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_advise.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

FittedCost cost_of(double seconds_per_byte) {
  return *FittedCost::create({{1024, 1 << 20, {1e-3, seconds_per_byte}, 9, 0.015}}, {});
}

LiveSet asked_set() {
  LiveSet set;
  set.planner = "streams";
  set.streams = 4;
  set.nodes = 3;
  set.io_threads = 2;
  set.carry_seconds_per_byte = 3e-9;
  set.steps_measured = 48;
  set.steps_ignored = 2;
  set.measured_iteration_seconds = 0.6;
  set.cost = cost_of(4e-9);
  set.trace.tensors = {{"first", 256, DataType::Float32, 0.1}};
  return set;
}

std::string error_of(LiveSet set) {
  const auto subject = advise_subject_of(std::move(set), "j", std::nullopt);
  EXPECT_FALSE(subject.is_ok());
  return subject.is_ok() ? "" : subject.status().message();
}

TEST(AdviseSubject, IsWhatTheJobsDaemonsKnow) {
  const auto subject = advise_subject_of(asked_set(), "j", std::nullopt).value();
  EXPECT_EQ(subject.nodes, 3u);
  EXPECT_EQ(subject.planner, "streams");
  EXPECT_EQ(subject.planning.streams, 4u);
  EXPECT_FALSE(subject.planning.fewest_groups);
  EXPECT_EQ(subject.encode_threads, 2);
  EXPECT_EQ(subject.carry_seconds_per_byte, 3e-9);
  EXPECT_EQ(subject.measured_seconds, 0.6);
  EXPECT_EQ(subject.cost, cost_of(4e-9));
  EXPECT_EQ(subject.cost_source, "job 'j'");
}

TEST(AdviseSubject, IsPlannedExactlyWhereNoPlannerHasDoneIt) {
  LiveSet set = asked_set();
  set.planner = "first";
  EXPECT_EQ(advise_subject_of(set, "j", std::nullopt)->planner, "exact");
}

TEST(AdviseSubject, NeedsThePlainCost) {
  LiveSet set = asked_set();
  set.cost.reset();
  EXPECT_NE(error_of(set).find("no cost is fitted yet: 48 steps are complete"), std::string::npos);
  EXPECT_EQ(advise_subject_of(set, "j", cost_of(9e-9))->cost, cost_of(9e-9));
  set = asked_set();
  set.cost = cost_of(0);
  EXPECT_NE(error_of(set).find("job 'j': by the fitted cost more bytes take no more"),
            std::string::npos);
  EXPECT_EQ(advise_subject_of(set, "j", cost_of(9e-9))->cost, cost_of(9e-9));
  set = asked_set();
  set.codecs = {{"none"}, {"int8"}, {"bf16"}, {"int8"}};
  EXPECT_NE(error_of(set).find("its gradients travel with int8, bf16 already"), std::string::npos);
  const auto given = advise_subject_of(set, "j", cost_of(9e-9)).value();
  EXPECT_EQ(given.measured_seconds, 0) << "that is a step with these codecs";
  EXPECT_EQ(given.carry_seconds_per_byte, 0);
}

TEST(AdviseSubject, SaysWhatItCannotBeGivenOf) {
  LiveSet set = asked_set();
  set.nodes = 1;
  EXPECT_EQ(error_of(set), "job 'j' runs on one node: nothing travels, so no codec has a use");
  set = asked_set();
  set.steps_measured = 1;
  EXPECT_NE(error_of(set).find("nothing is measured yet"), std::string::npos);
}

}  // namespace
}  // namespace braid
