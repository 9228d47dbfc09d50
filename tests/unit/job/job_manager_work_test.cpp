// SPDX-License-Identifier: Apache-2.0
// What trainers tell of placed work, and where it is seen.
#include "base/errors_testing.h"
#include "explain/node_facts.h"
#include "job/manager_world.h"
#include "timeline/node_timeline.h"

namespace braid {
namespace {

using testing::is_error;

class JobManagerWorkTest : public testing::JobManagerTest {
 protected:
  std::vector<WorkLoad> loads() {
    std::vector<WorkLoad> found;
    for (const JobTotals& job : board_.totals()) {
      for (const auto& [name, load] : job.work) found.push_back(load);
    }
    return found;
  }
};

TEST_F(JobManagerWorkTest, ATrainerIsAskedToTell) {
  open_job(1);
  EXPECT_TRUE(trainers_[0]->takes_work);
}

TEST_F(JobManagerWorkTest, IsInMetricsStatusAndFacts) {
  open_job(2);
  trainers_[1]->tell_work("inverses", "layer4.A", 0.061);
  wait_for([&] { return loads().size() == 1; });
  EXPECT_EQ(loads()[0].rank, 1u);
  EXPECT_EQ(loads()[0].seconds, 0.061);
  const auto job = statuses().at(0);
  ASSERT_EQ(job.work.size(), 1u);
  EXPECT_EQ(job.work[0].work, "inverses");
  EXPECT_EQ(job.work[0].rank, 1u);
  trainers_[0]->ask_facts("train");
  wait_for([&] { return !trainers_[0]->status_reply.empty(); });
  const auto facts = parse_job_facts(trainers_[0]->status_reply).value();
  ASSERT_EQ(facts.at(0).nodes.at(0).work.size(), 1u);
  const NodeFacts::Work& told = facts[0].nodes[0].work[0];
  EXPECT_EQ(told.seconds, 0.061);
  ASSERT_EQ(told.items.size(), 1u);
  EXPECT_EQ(told.items[0].name, "layer4.A");
  EXPECT_LT(told.told_ago_ns, 60'000'000'000u);
}

TEST_F(JobManagerWorkTest, IsInTheTimeline) {
  open_job(2);
  finish_steps(0, 3);
  trainers_[1]->tell_work("inverses", "layer4.A", 0.061);
  wait_for([&] { return loads().size() == 1; });
  trainers_[0]->ask_timeline("train", 64);
  wait_for([&] { return !trainers_[0]->status_reply.empty() && !trainers_[0]->reply_goes_on; });
  const auto jobs = parse_job_timelines(trainers_[0]->status_reply).value();
  const NodeTimeline& node = jobs.at(0).nodes.at(0).timeline;
  ASSERT_EQ(node.work.size(), 1u);
  EXPECT_EQ(node.work[0].rank, 1u);
  EXPECT_EQ(node.names.at(node.work[0].work), "inverses");
  EXPECT_EQ(node.names.at(node.work[0].item), "layer4.A");
}

TEST_F(JobManagerWorkTest, OfOneNameIsThatWhichWasToldLast) {
  const std::string tokens[] = {"a", "b"};
  for (const std::string& token : tokens) {
    add_trainer().open("train", 0, 1, kThisNode, 60'000, 0, token);
    wait_for([&] { return trainers_.back()->is_open; });
  }
  trainers_[0]->tell_work("inverses", "x", 1);
  wait_for([&] { return loads().size() == 1; });
  trainers_[1]->tell_work("inverses", "x", 2);
  wait_for([&] { return loads().at(0).seconds == 2; });
}

TEST_F(JobManagerWorkTest, ThatMakesNoSenseEndsTheJob) {
  open_job(2);
  trainers_[1]->tell_work("inverses", "layer4.A", -1);
  EXPECT_TRUE(is_error(failure_of(*trainers_[0]), StatusCode::InvalidArgument,
                       {"'train'", "rank 1", "'inverses'", "-1 s"}));
}

TEST_F(JobManagerWorkTest, BeforeTheJobIsOpenDoesNotBelong) {
  add_trainer().open("train", 0, 2, kThisNode);
  trainers_[0]->tell_work("inverses", "layer4.A", 1);
  EXPECT_TRUE(is_error(failure_of(*trainers_[0]), StatusCode::Protocol, {"WorkTold"}));
}

}  // namespace
}  // namespace braid
