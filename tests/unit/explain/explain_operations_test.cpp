// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explain/explained_job.h"

namespace braid::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ExplainOperations, WhoSubmitsLastIsNamed) {
  ExplainedJob job(2, 2);
  job.replace_steps_by_operations(20);
  for (size_t number = 0; number < 20; number += 2) job.delay_operation_ms(1, 1, number, 30);
  const auto explanation = job.explain().value();
  EXPECT_EQ(explanation.operations, 20u);
  EXPECT_EQ(explanation.steps, 0u);
  const Finding late = job.find(Cause::LateRank);
  EXPECT_EQ(late.rank, 3u);
  EXPECT_EQ(late.node, "b");
  EXPECT_NEAR(late.seconds_per_step, 0.3, 1e-9);
  EXPECT_THAT(late.text,
              HasSubstr("Rank 3 on b submits 10 of 20 operations after the others, 30 ms later in "
                        "the median (all-reduce "));
}

TEST(ExplainOperations, OperationsThatOverlapAreNotCountedTwice) {
  ExplainedJob job;
  job.replace_steps_by_operations(20);
  // A step of four that are submitted at once and end at once: the rank is late for all of them.
  for (size_t i = 0; i < 3; ++i) {
    for (size_t number = 0; number < 4; ++number) {
      NodeFacts::Operation& one = job.node(i).operations[number];
      one.ended_ago_ns = 0;
      if (i != 2) one.wait_ns[0] += 40 * kMs;
    }
  }
  EXPECT_NEAR(job.find(Cause::LateRank).seconds_per_step, 0.04, 1e-9);
}

TEST(ExplainOperations, WithNothingWrongComputeBoundsTheJob) {
  ExplainedJob job;
  job.replace_steps_by_operations(20);
  for (size_t i = 0; i < 3; ++i) {
    for (NodeFacts::Operation& one : job.node(i).operations) one.wait_ns[0] = kMs / 10;
  }
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Compute));
}

TEST(ExplainOperations, WhereAllWaitItIsTheNetwork) {
  ExplainedJob job;
  job.replace_steps_by_operations(20);
  for (size_t i = 0; i < 3; ++i) {
    for (NodeFacts::Operation& one : job.node(i).operations) one.wait_ns[0] = 5 * kMs;
  }
  const Finding network = job.find(Cause::Network);
  EXPECT_NEAR(network.seconds_per_step, 0.1, 1e-9);
  EXPECT_THAT(network.text, HasSubstr("51 % of the time"));
}

TEST(ExplainOperations, OperationsOfOneRootSayNothing) {
  ExplainedJob job;
  job.replace_steps_by_operations(40);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t number = 0; number < 40; number += 2)
      job.node(i).operations[number].collective = "broadcast";
  }
  for (size_t number = 0; number < 40; number += 2) job.delay_operation_ms(0, 0, number, 30);
  EXPECT_EQ(job.explain()->operations, 20u);
  EXPECT_THAT(job.causes(), ::testing::Not(Contains(Cause::LateRank)));
}

TEST(ExplainOperations, LinksAreLookedAtAsWell) {
  ExplainedJob job;
  job.replace_steps_by_operations(20);
  job.node(1).rails_down = {"eth1"};
  EXPECT_THAT(job.causes(), Contains(Cause::RailDown));
}

TEST(ExplainOperations, AFewOperationsAreTooFew) {
  ExplainedJob job;
  job.replace_steps_by_operations(15);
  EXPECT_THAT(job.explain().status().message(),
              HasSubstr("all of its nodes report 15 operations, and 16 are needed"));
}

TEST(ExplainOperations, WhatOneNodeDoesNotTellOfIsLeftOut) {
  ExplainedJob job;
  job.replace_steps_by_operations(20);
  job.node(2).operations.erase(job.node(2).operations.begin());
  EXPECT_EQ(job.explain()->operations, 19u);
}

TEST(ExplainOperations, TheTextSaysWhatTheTimesArePartsOf) {
  ExplainedJob job;
  job.replace_steps_by_operations(20);
  for (size_t number = 0; number < 20; ++number) job.delay_operation_ms(0, 0, number, 30);
  const std::string text = explanation_text(*job.explain());
  EXPECT_THAT(text, HasSubstr("it has no planned tensors, so its steps are not known: within the "
                              "791 ms of its latest 20 operations"));
  EXPECT_THAT(text, HasSubstr("It costs up to 600 ms of 791 ms."));
}

}  // namespace
}  // namespace braid::testing
