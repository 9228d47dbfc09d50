// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explain/explained_job.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ExplainRanks, WithNothingWrongComputeBoundsTheStep) {
  ExplainedJob job;
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Compute));
  EXPECT_THAT(job.find(Cause::Compute).text, HasSubstr("of 100 ms the trainers wait 0.5 ms"));
}

TEST(ExplainRanks, ALateRankIsNamedWithItsNodeAndHowMuch) {
  ExplainedJob job;
  job.delay_ms(2, 0, 41);
  EXPECT_THAT(job.causes(), ElementsAre(Cause::LateRank));
  const Finding late = job.find(Cause::LateRank);
  EXPECT_EQ(late.rank, 2u);
  EXPECT_EQ(late.node, "c");
  EXPECT_NEAR(late.seconds_per_step, 0.041, 1e-9);
  EXPECT_EQ(late.text,
            "Rank 2 on c is 41 ms late in most steps: its backward pass takes 1.7 times the "
            "others' (101 ms, theirs 60 ms)");
}

TEST(ExplainRanks, WhatOthersWaitForALateRankIsNotTheNetworks) {
  ExplainedJob job;
  job.delay_ms(0, 0, 50);
  EXPECT_DOUBLE_EQ(job.explain()->exposed_seconds, 0.0005);
  EXPECT_THAT(job.causes(), Not(::testing::Contains(Cause::Network)));
}

TEST(ExplainRanks, ARankThatBeginsLateIsToldFromOneThatIsSlow) {
  ExplainedJob job(2, 2);
  job.delay_ms(1, 1, 20, /*is_in_backward=*/false);
  const Finding late = job.find(Cause::LateRank);
  EXPECT_EQ(late.rank, 3u);
  EXPECT_THAT(late.text, HasSubstr("its first gradient comes 20 ms after theirs"));
}

// Delays the step at that place alone.
void delay_one_step(ExplainedJob& job, size_t nodes, size_t late, size_t step) {
  for (size_t i = 0; i < nodes; ++i) {
    NodeFacts::Step& one = job.node(i).steps[step];
    one.step_ns += 80 * kMs;
    (i == late ? one.before_ns : one.wait_ns)[0] += 80 * kMs;
  }
}

TEST(ExplainRanks, ARankThatIsSlowInOneStepOfThreeIsNamed) {
  ExplainedJob job;
  for (size_t step = 0; step < ExplainedJob::kSteps; step += 3) delay_one_step(job, 3, 1, step);
  const Finding late = job.find(Cause::LateRank);
  EXPECT_EQ(late.rank, 1u);
  EXPECT_EQ(late.node, "b");
  EXPECT_NEAR(late.seconds_per_step, 0.080 * 7 / 20, 1e-9);
  EXPECT_EQ(late.text,
            "Rank 1 on b is 80 ms late in 7 of 20 steps: its first gradient comes 80 ms after "
            "theirs, so its input, its forward pass or its optimizer takes longer");
}

TEST(ExplainRanks, AFewSlowStepsAreAnAccident) {
  ExplainedJob job;
  for (const size_t step : {4, 11, 12}) delay_one_step(job, 3, 1, step);
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Compute));
}

TEST(ExplainRanks, RanksThatAreLateInTurnsAreCounted) {
  ExplainedJob job(4);
  for (size_t step = 0; step < 12; ++step) delay_one_step(job, 4, step % 4, step);
  const Finding late = job.find(Cause::LateRank);
  EXPECT_FALSE(late.rank);
  EXPECT_NEAR(late.seconds_per_step, 0.080 * 12 / 20, 1e-9);
  EXPECT_EQ(late.text,
            "Ranks are late in turns: in 12 of 20 steps one of them is, by 80 ms (rank 0 in 3, "
            "rank 1 in 3, rank 2 in 3, …)");
}

TEST(ExplainRanks, OfTwoRanksTheLateOneIsBlamed) {
  ExplainedJob job(2);
  job.delay_ms(0, 0, 30);
  EXPECT_EQ(job.find(Cause::LateRank).rank, 0u);
}

TEST(ExplainRanks, OfManyRanksTheFewLateOnesAreNamedTheLatestFirst) {
  ExplainedJob job(4, 8);
  job.delay_ms(2, 3, 25);
  for (NodeFacts::Step& step : job.node(2).steps)
    for (size_t i = 0; i < 3; ++i) step.wait_ns[i] -= (10 + 5 * i) * kMs;
  const auto explanation = job.explain().value();
  ASSERT_EQ(explanation.findings.size(), 3u) << "no more than three are";
  EXPECT_EQ(explanation.findings[0].rank, 19u);
  EXPECT_NEAR(explanation.findings[0].seconds_per_step, 0.025, 1e-9);
  EXPECT_EQ(explanation.findings[1].rank, 18u);
}

TEST(ExplainRanks, OneHiccupBlamesNobody) {
  ExplainedJob job;
  job.node(0).steps[7].wait_ns[0] += 3000 * kMs;
  job.node(1).steps[7].wait_ns[0] += 3000 * kMs;
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Compute));
}

TEST(ExplainRanks, ALongTimeBeforeTheFirstGradientIsLikelyTheInput) {
  ExplainedJob job;
  for (size_t i = 0; i < 3; ++i) {
    for (NodeFacts::Step& step : job.node(i).steps) {
      step.before_ns[0] += 270 * kMs;
      step.step_ns += 270 * kMs;
    }
  }
  EXPECT_THAT(job.causes(), ElementsAre(Cause::BeforeBackward));
  const Finding before = job.find(Cause::BeforeBackward);
  EXPECT_NEAR(before.seconds_per_step, 0.27, 1e-9);
  EXPECT_THAT(
      before.text,
      HasSubstr(
          "A step takes 370 ms, 300 ms pass before its first gradient, and backward takes 60 ms"));
}

TEST(ExplainRanks, OfOneGradientNobodyKnowsWhenBackwardHasBegun) {
  ExplainedJob job;
  for (size_t i = 0; i < 3; ++i)
    for (NodeFacts::Step& step : job.node(i).steps) {
      step.before_ns[0] = 90 * kMs;
      step.backward_ns[0] = 0;
    }
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Compute));
}

TEST(ExplainRanks, TheFirstRankWithoutFiniteGradientsIsNamed) {
  ExplainedJob job;
  job.node(0).not_finite = {{0, 9, 11, 19, "conv.weight"}};
  job.node(1).not_finite = {{1, 10, 10, 19, "fc.weight"}};
  const Finding finding = job.find(Cause::NotFinite);
  EXPECT_EQ(finding.rank, 1u);
  EXPECT_EQ(finding.text,
            "Rank 1 on b was the first to give a gradient that is not finite: 'fc.weight' in step "
            "10; it did in 10 steps, and 1 other ranks did, too");
  EXPECT_EQ(job.causes().front(), Cause::NotFinite);
}

TEST(ExplainRanks, WhereAllRanksBeginTogetherNoneIsBlamed) {
  ExplainedJob job(2);
  job.node(0).not_finite = {{0, 3, 11, 19, "fc.weight"}};
  job.node(1).not_finite = {{1, 3, 11, 19, "fc.weight"}};
  const Finding finding = job.find(Cause::NotFinite);
  EXPECT_FALSE(finding.rank);
  EXPECT_THAT(finding.text,
              HasSubstr("All ranks give gradients that are not finite, from step 11"));
}

TEST(ExplainRanks, WhatWasNotFiniteLongAgoIsForgotten) {
  ExplainedJob job;
  job.node(1).not_finite = {{1, 2, 0, 1, "fc.weight"}};  // a loss scale that was found
  for (size_t i = 0; i < 3; ++i)
    for (NodeFacts::Step& step : job.node(i).steps) step.step += 100;
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Compute));
}

TEST(ExplainRanks, AJobThatStandsStillSaysSoFirst) {
  ExplainedJob job;
  job.delay_ms(1, 0, 30);
  for (size_t i = 0; i < 3; ++i) job.node(i).last_step_ago_ns = 35'000 * kMs;
  job.node(0).operations_pending = 2;
  EXPECT_EQ(job.causes().front(), Cause::Stalled);
  EXPECT_THAT(job.find(Cause::Stalled).text,
              HasSubstr("No step has ended for 35 s, where one took 130 ms before: 2 operations"));
}

TEST(ExplainRanks, AStallNamesTheOperationAndWhoIsMissing) {
  ExplainedJob job;
  for (size_t i = 0; i < 3; ++i) {
    job.node(i).last_step_ago_ns = 35'000 * kMs;
    job.node(i).world_size = 3;
  }
  for (const size_t i : {0, 2}) {
    job.node(i).operations_pending = 1;
    job.node(i).pending = {
        {"layer4", 12, "all-reduce", 3, 25'000'000, 34'000 * kMs, false, job.node(i).ranks}};
  }
  EXPECT_THAT(
      job.find(Cause::Stalled).text,
      HasSubstr("the all-reduce of 'layer4' and 2 more, step 12 (23.8 MiB) has waited for 34 "
                "s, because rank 1 on b has not submitted it"));
  job.node(1).ended = {{"layer4", 12}};
  EXPECT_THAT(job.find(Cause::Stalled).text, HasSubstr("all ranks have submitted it"));
}

TEST(ExplainRanks, WithoutPlannedTensorsThereIsNothingToExplain) {
  ExplainedJob job;
  for (size_t i = 0; i < 3; ++i) {
    job.node(i).planned_bytes = 0;
    job.node(i).steps.clear();
  }
  EXPECT_EQ(job.explain().status().code(), StatusCode::NotFound);
  EXPECT_THAT(job.explain().status().message(), HasSubstr("has no planned tensors"));
}

TEST(ExplainRanks, AFewStepsAreTooFew) {
  ExplainedJob job;
  for (size_t i = 0; i < 3; ++i) job.node(i).steps.resize(5);
  EXPECT_THAT(job.explain().status().message(), HasSubstr("5 steps have ended so far"));
}

}  // namespace
}  // namespace braid::testing
