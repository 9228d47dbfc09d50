// SPDX-License-Identifier: Apache-2.0
// Settings that come with a plan.
#include "planning/plan_book_testing.h"

namespace braid {
namespace {

using testing::hash_of;
using testing::planned_tensors;

class PlanBookSettingsTest : public testing::PlanBookTest {
 protected:
  // Two tensors, whose settings and flows are written down.
  void make_noting() {
    PlanActions actions = noting_actions();
    actions.use = [this](const TransferSettings& settings) { used_.push_back(settings); };
    actions.add_flows = [this](uint32_t flows) { flows_.push_back(flows); };
    make({0}, std::move(actions));
    add(0, kSet, planned_tensors(2));
  }
  static TransferSettings settings(uint32_t streams) {
    TransferSettings result;
    result.streams = streams;
    return result;
  }
  void adopt(uint32_t number, uint64_t from_step, uint32_t streams, bool reports_steps = true) {
    PlanProposal change;
    change.job_key = kJob;
    change.set = kSet;
    change.number = number;
    change.from_step = from_step;
    change.settings = settings(streams);
    change.flows_open = 9;
    change.reports_steps = reports_steps;
    ASSERT_TRUE(book_->on_proposal(change).is_ok());
    ASSERT_TRUE(decide(number, true).is_ok());
  }
  // Both tensors are one group or two; all of the step's operations end.
  void finish_step(uint64_t step, bool is_merged) {
    for (uint32_t i = 0; i < (is_merged ? 1 : 2); ++i)
      ASSERT_TRUE(book_->on_done({kJob, hash_of(i), step}, now_ns_ += 1000, 0).is_ok());
  }

  std::vector<TransferSettings> used_;
  std::vector<uint32_t> flows_;
};

TEST_F(PlanBookSettingsTest, OfATrialEndWithItsSet) {
  make_noting();
  adopt(1, 3, 7);
  ASSERT_TRUE(submit(0, 3).is_ok());
  ASSERT_EQ(used_.size(), 1u);
  EXPECT_NE(book_->remove(0, kSet), nullptr);
  ASSERT_EQ(used_.size(), 2u);
  EXPECT_EQ(used_[1].streams, 0u);
  EXPECT_EQ(used_[1].flows, 0u);
}

TEST_F(PlanBookSettingsTest, ThatWereFoundOutlastTheirSet) {
  make_noting();
  adopt(1, 3, 7, false);
  ASSERT_TRUE(submit(0, 3).is_ok());
  EXPECT_NE(book_->remove(0, kSet), nullptr);
  EXPECT_EQ(used_.size(), 1u);
}

TEST_F(PlanBookSettingsTest, SayWhatWasRegisteredOnce) {
  make_noting();
  const auto said = sent_as<proto::SetRegistered>();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0]->set(), kSet);
  EXPECT_EQ(said[0]->tensors(), 2u);
  EXPECT_EQ(said[0]->bytes(), 2u * 100 * 4);
  EXPECT_NE(said[0]->tensors_hash(), 0u);
}

TEST_F(PlanBookSettingsTest, GoWithTheSubmissionsFromTheirStepOn) {
  make_noting();
  submit_step(0, 2);
  adopt(1, 2, 7);
  EXPECT_EQ(flows_, std::vector<uint32_t>{9});
  submit_step(1, 2);
  EXPECT_TRUE(used_.empty());
  for (const testing::Passed& one : passed) EXPECT_EQ(one.form().settings, nullptr);
  passed.clear();
  submit_step(2, 2);
  EXPECT_EQ(used_, std::vector<TransferSettings>{settings(7)});
  for (const testing::Passed& one : passed) {
    ASSERT_NE(one.form().settings, nullptr);
    EXPECT_EQ(*one.form().settings, settings(7));
    EXPECT_TRUE(one.form().is_merged()) << "the groups stay";
  }
}

TEST_F(PlanBookSettingsTest, StayWhenGroupsChange) {
  make_noting();
  adopt(1, 1, 7);
  submit_step(1, 2);
  agree(2, 2, {{0}, {1}});
  passed.clear();
  submit_step(2, 2);
  ASSERT_EQ(passed.size(), 2u);
  EXPECT_EQ(*passed[0].form().settings, settings(7));
  EXPECT_FALSE(passed[0].form().is_merged());
  EXPECT_EQ(used_.size(), 1u) << "they are the same";
  EXPECT_EQ(*book_->settings(), settings(7));
}

TEST_F(PlanBookSettingsTest, StepsAreReportedWhileThatIsAskedFor) {
  make_noting();
  adopt(1, 2, 7);
  for (uint64_t step = 0; step < 4; ++step) {
    submit_step(step, 2);
    finish_step(step, true);
  }
  adopt(2, 4, 3, /*reports_steps=*/false);
  submit_step(4, 2);
  finish_step(4, true);
  const auto reports = sent_as<proto::StepReport>();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0]->step(), 2u);
  EXPECT_EQ(reports[0]->plan(), 1u);
  EXPECT_EQ(reports[1]->step(), 3u);
  EXPECT_EQ(reports[1]->nanoseconds(), 1020u);  // two submissions and the result
}

TEST_F(PlanBookSettingsTest, AStepEndsWithItsLastOperation) {
  make_noting();
  agree(1, 1, {{0}, {1}});
  adopt(2, 2, 7);
  submit_step(1, 2);
  finish_step(1, false);
  submit_step(2, 2);
  ASSERT_TRUE(book_->on_done({kJob, hash_of(1), 2}, now_ns_ += 1000, 0).is_ok());
  EXPECT_TRUE(sent_as<proto::StepReport>().empty());
  ASSERT_TRUE(book_->on_done({kJob, hash_of(0), 2}, now_ns_ += 1000, 0).is_ok());
  EXPECT_EQ(sent_as<proto::StepReport>().size(), 1u);
}

}  // namespace
}  // namespace braid
