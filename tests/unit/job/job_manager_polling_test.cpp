// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "job/manager_world.h"

namespace braid {
namespace {

class JobManagerPollingTest : public testing::JobManagerTest {
 protected:
  static ControlBuffer switched(bool polls, bool pays, double gain, uint32_t duels) {
    return make_duel_switch(kKey, {proto::DuelSubject::Polling, polls, pays, gain, duels});
  }
  DaemonStatus::DuelFound found() { return statuses().at(0).polling; }
};

TEST_F(JobManagerPollingTest, TheCoordinatorSaysWhenThreadsPoll) {
  open_with_b();
  EXPECT_FALSE(trainers_[0]->may_poll());
  EXPECT_FALSE(engines_->polling_jobs()->has_any());
  hear(b_, switched(true, false, 0, 0));
  EXPECT_TRUE(trainers_[0]->may_poll());
  EXPECT_TRUE(engines_->polling_jobs()->has_any());
  EXPECT_EQ(found().duels, 0u);
  hear(b_, switched(false, false, 0.5, 1));
  EXPECT_FALSE(trainers_[0]->may_poll());
  EXPECT_FALSE(engines_->polling_jobs()->has_any());
  EXPECT_FALSE(found().pays);
  EXPECT_EQ(found().gain, 0.5);
  EXPECT_EQ(found().duels, 1u);
}

TEST_F(JobManagerPollingTest, AJobThatIsOverPollsNoMore) {
  open_with_b();
  hear(b_, switched(true, true, 2, 1));
  hear(b_, switched(true, true, 2, 2));
  EXPECT_TRUE(engines_->polling_jobs()->has_any());
  end_job_of_b();
  EXPECT_FALSE(engines_->polling_jobs()->has_any());
}

TEST_F(JobManagerPollingTest, AGainThatIsNoneIsNotShown) {
  open_with_b();
  for (const double gain :
       {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    hear(b_, switched(false, false, gain, 1));
    EXPECT_EQ(found().gain, 0) << gain;
  }
}

TEST_F(JobManagerPollingTest, TheCoordinatorSaysWhenChunksTakeFewFlows) {
  open_with_b();
  const auto flows = [&](bool few, const DaemonStatus::DuelFound& said) {
    hear(b_, make_duel_switch(kKey,
                              {proto::DuelSubject::Flows, few, said.pays, said.gain, said.duels}));
    EXPECT_FALSE(trainers_[0]->may_poll());
    EXPECT_EQ(statuses().at(0).few_flows.duels, said.duels);
    return transport_.limits.at(kKey).flows;
  };
  EXPECT_EQ(flows(true, {false, 0, 0}), 1u) << "one for each rail";
  EXPECT_EQ(flows(false, {false, 0.5, 1}), 0u) << "as configured";
}

TEST_F(JobManagerPollingTest, ANodeThatLeadsFindsOutByTheJobsOperations) {
  open_job(1);
  bool has_polled = false;
  for (uint64_t ticket = 1; found().duels == 0; ++ticket) {
    trainers_[0]->submit(ticket, 0, ticket);
    wait_for([&] { return trainers_[0]->done.size() == ticket; });
    trainers_[0]->release(ticket);
    has_polled = has_polled || trainers_[0]->may_poll();
  }
  EXPECT_TRUE(has_polled);
  EXPECT_GT(found().gain, 0);
  EXPECT_EQ(trainers_[0]->may_poll(), found().pays);
  EXPECT_EQ(engines_->polling_jobs()->has_any(), found().pays);
}

}  // namespace
}  // namespace braid
