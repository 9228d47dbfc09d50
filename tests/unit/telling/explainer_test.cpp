// SPDX-License-Identifier: Apache-2.0
// An explanation is made once for all who ask, ends whatever happens meanwhile, and is kept for
// metrics as long as the job runs.
#include "telling/explainer.h"

#include <gtest/gtest.h>

#include "base/errors_testing.h"
#include "loop/loop_testing.h"
#include "telling/job_watch.h"

namespace braid {
namespace {

using testing::names;

// Ten steps of 100 ms of one rank, as its node tells of them.
std::string facts_json() {
  NodeFacts node;
  node.node = "a";
  node.world_size = 1;
  node.ranks = {0};
  node.planned_bytes = 4;
  for (uint64_t step = 1; step <= 10; ++step)
    node.steps.push_back({step, 100'000'000, {30'000'000}, {60'000'000}, {1'000'000}});
  return R"({"job":"train","nodes":[)" + to_json(node) + R"(],"missing":[]})";
}

class ExplainerTest : public testing::LoopTest {
 protected:
  static constexpr uint64_t kKey = 7;
  static constexpr uid_t kUser = 1000;

  ExplainerTest() {
    gather_ = [this](Explainer::Gathered gathered) {
      ++gatherings_;
      loop_->defer([gathered = std::move(gathered)] {
        gathered(std::make_shared<const std::string>(facts_json()));
      });
      return Status::ok();
    };
  }
  Explainer::Explained keep() {
    return [this](const Result<Explanation>& explanation) { explained_.push_back(explanation); };
  }

  SystemClock clock_;
  WorkThread worker_{*loop_, "plan"};
  int gatherings_ = 0;
  bool has_job_ = true;
  std::function<Status(Explainer::Gathered)> gather_;
  std::vector<Result<Explanation>> explained_;
  FindingsBoard board_;
  Explainer explainer_{
      *loop_,
      worker_,
      {[this](uint64_t, Explainer::Gathered gathered) { return gather_(std::move(gathered)); },
       [this](uint64_t) -> std::function<std::string()> {
         if (!has_job_) return nullptr;
         return [] { return R"({"job":"train","sets":[]})"; };
       }},
      20};
};

TEST_F(ExplainerTest, WhoAsksMeanwhileGetsTheSameAnswer) {
  ASSERT_TRUE(explainer_.explain(kKey, kUser, keep()));
  ASSERT_TRUE(explainer_.explain(kKey, kUser, keep()));
  EXPECT_TRUE(explained_.empty()) << "never from within the call";
  run_until([&] { return explained_.size() == 2; });
  EXPECT_EQ(gatherings_, 2) << "two looks for both";
  for (const auto& explanation : explained_) {
    ASSERT_TRUE(explanation) << explanation.status().message();
    EXPECT_EQ(explanation->job, "train");
    EXPECT_EQ(explanation->steps, 10u);
  }
}

TEST_F(ExplainerTest, AJobThatEndsMeanwhileIsAnError) {
  ASSERT_TRUE(explainer_.explain(kKey, kUser, keep()));
  has_job_ = false;
  run_until([&] { return !explained_.empty(); });
  EXPECT_EQ(explained_[0].status().message(), "the job is over");
}

TEST_F(ExplainerTest, WhatCannotBeAskedIsSaidAtOnceOrLater) {
  const auto refuse = [](auto) { return Status(StatusCode::ResourceExhausted, "not now"); };
  const auto can = gather_;
  gather_ = refuse;
  EXPECT_EQ(explainer_.explain(kKey, kUser, keep()).message(), "not now");
  gather_ = can;
  ASSERT_TRUE(explainer_.explain(kKey, kUser, keep())) << "nothing is left of the first one";
  gather_ = refuse;
  run_until([&] { return !explained_.empty(); });
  ASSERT_EQ(explained_.size(), 1u);
  EXPECT_EQ(explained_[0].status().message(), "not now");
}

TEST_F(ExplainerTest, TextThatIsNoAnswerIsAnError) {
  gather_ = [this](Explainer::Gathered gathered) {
    loop_->defer(
        [gathered = std::move(gathered)] { gathered(std::make_shared<const std::string>("{")); });
    return Status::ok();
  };
  ASSERT_TRUE(explainer_.explain(kKey, kUser, keep()));
  run_until([&] { return !explained_.empty(); });
  EXPECT_FALSE(explained_[0]);
}

TEST_F(ExplainerTest, AskersAreBounded) {
  for (size_t i = 0; i < Explainer::kAskersMax; ++i)
    ASSERT_TRUE(explainer_.explain(kKey, kUser, keep()));
  EXPECT_EQ(explainer_.explain(kKey, kUser, keep()).code(), StatusCode::ResourceExhausted);
  run_until([&] { return explained_.size() == Explainer::kAskersMax; });
  EXPECT_TRUE(explainer_.explain(kKey, kUser, keep()));
}

TEST_F(ExplainerTest, AUsersJobsDoNotTakeThePlacesOfAllOthers) {
  for (uint64_t job = 1; job <= Explainer::kJobsOfUserMax; ++job)
    ASSERT_TRUE(explainer_.explain(job, kUser, keep()));
  EXPECT_TRUE(names(explainer_.explain(100, kUser, keep()).message(), {"8 jobs", "user 1000"}));
  EXPECT_TRUE(explainer_.explain(101, kUser + 1, keep()));
  EXPECT_TRUE(explainer_.explain(102, std::nullopt, keep())) << "the daemon itself";
  run_until([&] { return explained_.size() == Explainer::kJobsOfUserMax + 2; });
}

TEST_F(ExplainerTest, AWatchedJobIsExplainedAgainAndAgain) {
  JobWatch watch(*loop_, clock_, explainer_, board_, 10);
  watch.add(kKey);
  run_until([&] { return gatherings_ >= 4; });
  ASSERT_EQ(board_.entries().size(), 1u);
  EXPECT_EQ(board_.entries()[0].job, "train");
  EXPECT_EQ(board_.entries()[0].cause, "compute");
  watch.remove(kKey);
  EXPECT_TRUE(board_.entries().empty());
  // One that is looked at still is not put back.
  const int before = gatherings_;
  watch.add(kKey);
  run_until([&] { return gatherings_ > before; });
  watch.remove(kKey);
  ASSERT_TRUE(explainer_.explain(kKey, kUser, keep()));
  run_until([&] { return !explained_.empty(); });
  EXPECT_TRUE(board_.entries().empty());
}

TEST_F(ExplainerTest, OfAJobThatCannotBeExplainedNothingStays) {
  JobWatch watch(*loop_, clock_, explainer_, board_, 10);
  watch.add(kKey);
  run_until([&] { return !board_.entries().empty(); });
  gather_ = [](auto) { return Status(StatusCode::ResourceExhausted, "not now"); };
  run_until([&] { return board_.entries().empty(); });
  watch.remove(kKey);
}

}  // namespace
}  // namespace braid
