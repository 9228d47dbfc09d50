// SPDX-License-Identifier: Apache-2.0
#include "explain/job_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explain/explained_job.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;

TEST(JobView, OnlyStepsCountThatAllNodesKnow) {
  ExplainedJob job(2);
  job.node(0).steps.resize(4);
  job.node(1).steps.erase(job.node(1).steps.begin(), job.node(1).steps.begin() + 2);
  EXPECT_THAT(view_job(job.after()).steps, ElementsAre(2, 3));
}

TEST(JobView, ANodeWithoutStepsLeavesNone) {
  ExplainedJob job(2);
  job.node(1).steps.clear();
  EXPECT_TRUE(view_job(job.after()).steps.empty());
}

TEST(JobView, TheNetworkIsWhatTheLastRankWaitsFor) {
  ExplainedJob job(2, 2);
  job.delay_ms(1, 0, 40);
  job.expose_ms(7);
  const JobView view = view_job(job.after());
  EXPECT_DOUBLE_EQ(view.exposed(), 0.0075);
  EXPECT_EQ(view.ranks.size(), 4u);
  EXPECT_EQ(view.ranks[2].rank, 2u);
  EXPECT_EQ(view.ranks[2].node, "b");
  EXPECT_DOUBLE_EQ(median(view.ranks[3].wait), 0.0475);
}

TEST(JobView, RanksStandInTheirOrderAcrossNodes) {
  ExplainedJob job(2, 2);
  job.node(0).ranks = {1, 3};
  job.node(1).ranks = {0, 2};
  const JobView view = view_job(job.after());
  EXPECT_EQ(view.ranks[1].node, "a");
  EXPECT_EQ(view.ranks[2].node, "b");
}

TEST(JobView, MediansOfFewAndNone) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1}), 1);
  EXPECT_EQ(quantile({5, 4, 3, 2, 1}, 0.25), 2);
}

TEST(JobView, AmountsForPeople) {
  EXPECT_EQ(format_time(0.00064), "0.6 ms");
  EXPECT_EQ(format_time(0.0412), "41 ms");
  EXPECT_EQ(format_time(1.254), "1.25 s");
  EXPECT_EQ(format_time(35.2), "35 s");
  EXPECT_EQ(format_rate(0.25e9), "2 Gbit/s");
}

}  // namespace
}  // namespace braid::testing
