// SPDX-License-Identifier: Apache-2.0
// What a node tells of when it did what, how it asks others for it, and the files of failed jobs.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/errors_testing.h"
#include "job/manager_world.h"
#include "timeline/node_timeline.h"

namespace braid {
namespace {

using testing::names;

class JobManagerTimelineTest : public testing::JobManagerTest {
 protected:
  static constexpr int64_t kAheadNs = 3'000'000'000;  // of the other node's clock

  std::vector<JobTimeline> told() {
    wait_for([&] { return !trainers_[0]->status_reply.empty() && !trainers_[0]->reply_goes_on; });
    auto jobs = parse_job_timelines(trainers_[0]->status_reply);
    EXPECT_TRUE(jobs) << jobs.status().message() << trainers_[0]->status_reply;
    return jobs ? *jobs : std::vector<JobTimeline>{};
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    if (!std::filesystem::exists(timelines_)) return found;
    for (const auto& file : std::filesystem::directory_iterator(timelines_))
      found.push_back(file.path());
    return found;
  }
};

TEST_F(JobManagerTimelineTest, ANodeTellsOfTheStepsThatAreAskedFor) {
  open_job(2);
  register_planned();
  finish_steps(0, 9);
  trainers_[0]->ask_timeline("train", 3);
  const auto jobs = told();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].job, "train");
  EXPECT_EQ(jobs[0].first_step, 6u);
  ASSERT_EQ(jobs[0].nodes.size(), 1u);
  EXPECT_EQ(jobs[0].nodes[0].error_ns, 0u);
  const NodeTimeline& node = jobs[0].nodes[0].timeline;
  EXPECT_EQ(node.node, "here");
  EXPECT_EQ(node.ranks, (std::vector<uint32_t>{0, 1}));
  std::vector<uint64_t> steps;
  for (const auto& submit : node.submits) {
    EXPECT_EQ(node.tensors[submit.tensor], "t0");
    EXPECT_TRUE(submit.is_planned);
    steps.push_back(submit.step);
  }
  EXPECT_EQ(steps, (std::vector<uint64_t>{6, 6, 7, 7, 8, 8}));
  ASSERT_GE(node.operations.size(), 3u);
  for (const auto& operation : node.operations) EXPECT_EQ(operation.plan, 0);
  EXPECT_GE(node.units.size(), 3u);
  EXPECT_LT(node.told, 60'000'000'000u);
}

TEST_F(JobManagerTimelineTest, WhatHasNotEndedIsToldToo) {
  open_job(2);
  trainers_[1]->submit(7, trainers_[1]->registered.front(), 0);
  wait_for([&] { return manager_->jobs().operations_pending() == 1; });
  trainers_[0]->ask_timeline("train", 1);
  const NodeTimeline node = told().at(0).nodes.at(0).timeline;
  ASSERT_EQ(node.unfinished.size(), 1u);
  EXPECT_EQ(node.unfinished[0].missing, 1u);
  EXPECT_EQ(node.unfinished[0].go, NodeTimeline::Unfinished::kNotGone);
  EXPECT_EQ(node.tensors[node.unfinished[0].tensor], "w");
  EXPECT_EQ(node.submits.size(), 1u);
}

TEST_F(JobManagerTimelineTest, OfAJobThatIsNotThereNothingIsTold) {
  open_job(1);
  trainers_[0]->ask_timeline("another", 5);
  EXPECT_TRUE(told().empty());
  bool has_answer = false;
  telling_->questions().timeline("another", 0, 5, [&](const std::optional<std::string>& json) {
    has_answer = true;
    EXPECT_FALSE(json);
  });
  EXPECT_FALSE(has_answer);
  run_until([&] { return has_answer; });
}

TEST_F(JobManagerTimelineTest, ThePageGetsThisNodesPart) {
  open_job(1);
  register_planned();
  finish_steps(0, 4);
  std::optional<std::string> told;
  telling_->questions().timeline("train", 0, 2,
                                 [&](std::optional<std::string> json) { told = json; });
  run_until([&] { return told.has_value(); });
  const auto node = parse_node_timeline(*told);
  ASSERT_TRUE(node) << node.status().message();
  EXPECT_EQ(node->submits.size(), 2u);
}

TEST_F(JobManagerTimelineTest, ClocksAreComparedFirst) {
  open_job_on({{self_, {0}}, {d_, {1}}});
  trainers_[0]->ask_timeline("train", 5);
  for (size_t round = 1; round <= ClockOffset::kRounds; ++round) {
    const auto& query = last_to<proto::ClockQuery>(d_, round);
    EXPECT_EQ(query.job_key(), kKey);
    EXPECT_TRUE(control_plane_.sent_to<proto::FactsQuery>(d_.id).empty());
    const uint64_t there = clock_.now_ns() + kAheadNs;
    hear(b_, make_clock_reply(query, there, there));  // it was not asked
    hear(d_, make_clock_reply(query, there, there));
    hear(d_, make_clock_reply(query, there + 5, there + 5));  // a second time
  }
  const auto& query = last_to<proto::FactsQuery>(d_);
  EXPECT_EQ(control_plane_.sent_to<proto::ClockQuery>(d_.id).size(), ClockOffset::kRounds);
  ASSERT_NE(query.timeline(), nullptr);
  EXPECT_FALSE(query.of_all_nodes());
  EXPECT_EQ(query.timeline()->begin_ns(), 0u) << "no step has ended";
  EXPECT_GT(query.timeline()->end_ns(), clock_.now_ns() + kAheadNs / 2) << "by d's clock";
  EXPECT_GT(query.timeline()->bytes_max(), 1u << 20);
  NodeTimeline of_d;
  of_d.node = "d";
  const std::string json = to_json(of_d);
  hear(d_, make_facts_reply(kKey, query.question(), json.substr(0, 10), 0, 2));
  hear(d_, make_facts_reply(kKey, query.question(), json.substr(10), 1, 2));
  const auto jobs = told();
  ASSERT_EQ(jobs.at(0).nodes.size(), 2u);
  const JobTimeline::Node& node = jobs[0].nodes[1];
  EXPECT_EQ(node.timeline.node, "d");
  EXPECT_LE(static_cast<uint64_t>(std::abs(node.offset_ns - kAheadNs)), node.error_ns);
  EXPECT_LT(node.error_ns, 10'000'000'000u);
}

TEST_F(JobManagerTimelineTest, WhoseAnswerIsNoneIsMissing) {
  open_job_on({{self_, {0}}, {d_, {1}}});
  trainers_[0]->ask_timeline("train", 5);
  // Time goes backwards there.
  for (size_t round = 1; round <= ClockOffset::kRounds; ++round)
    hear(d_, make_clock_reply(last_to<proto::ClockQuery>(d_, round), 10, 5));
  const auto jobs = told();
  EXPECT_EQ(jobs.at(0).missing, (std::vector<std::string>{"d"}));
  EXPECT_TRUE(control_plane_.sent_to<proto::FactsQuery>(d_.id).empty());
}

TEST_F(JobManagerTimelineTest, TheCoordinatorIsAskedForAllNodes) {
  open_with_b();
  trainers_[0]->ask_timeline("train", 500);
  const auto& query = last_to<proto::FactsQuery>(b_);
  EXPECT_TRUE(query.of_all_nodes());
  ASSERT_NE(query.timeline(), nullptr);
  EXPECT_EQ(query.timeline()->steps(), NodeQueries::kStepsMax);
  hear(b_, make_facts_reply(kKey, query.question(), R"({"job":"train","nodes":[],)", 0, 2));
  hear(b_, make_facts_reply(kKey, query.question(), R"("missing":["x"]})", 1, 2));
  EXPECT_EQ(told().at(0).missing, (std::vector<std::string>{"x"}));
}

TEST_F(JobManagerTimelineTest, OthersOfTheJobAreAnsweredAndStrangersAreNot) {
  open_with_b();
  hear(b_, make_clock_query(kKey, 7, 123));
  const auto& reply = last_to<proto::ClockReply>(b_);
  EXPECT_EQ(reply.asked_ns(), 123u);
  EXPECT_LE(reply.received_ns(), reply.answered_ns());
  EXPECT_LE(reply.answered_ns(), clock_.now_ns());
  hear(b_, make_facts_query(kKey, 7, false, TimelineSpan{0, 0, UINT64_MAX, 100'000}));
  const auto& told = last_to<proto::FactsReply>(b_);
  const auto node = parse_node_timeline(told.json()->string_view());
  ASSERT_TRUE(node) << node.status().message();
  EXPECT_EQ(node->node, "here");
  EXPECT_EQ(node->peers, std::vector<std::string>{});

  control_plane_.add_peer(e_);  // a stranger
  hear(e_, make_clock_query(kKey, 8, 123));
  hear(e_, make_facts_query(kKey, 9, false, TimelineSpan{0, 0, UINT64_MAX, 100'000}));
  settle();
  EXPECT_TRUE(control_plane_.sent_to<proto::ClockReply>(e_.id).empty());
  EXPECT_TRUE(control_plane_.sent_to<proto::FactsReply>(e_.id).empty());
  EXPECT_EQ(telling_->questions().messages_refused(), 2u);
}

TEST_F(JobManagerTimelineTest, FewAreMadeAtATime) {
  open_with_b();
  for (uint32_t i = 0; i < NodeQueries::kTimelinesMax; ++i)
    trainers_[0]->ask_timeline("train", 5 + i);
  wait_for([&] {
    return control_plane_.sent_to<proto::FactsQuery>(b_.id).size() == NodeQueries::kTimelinesMax;
  });
  testing::TestTrainer other(directory_.file("braidd.sock"));
  other.ask_timeline("train", 20);
  wait_for([&] {
    other.poll();
    return !other.failure;
  });
  EXPECT_TRUE(names(other.failure.message(), {"timelines are being made already"}));
}

TEST_F(JobManagerTimelineTest, AJobThatFailsLeavesAFile) {
  open_job(2);
  register_planned();
  finish_steps(0, 3);
  trainers_[1]->hang_up();
  wait_for([&] { return files().size() == 1 && files().front().extension() == ".json"; });
  std::ifstream file(files().front());
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(text.find("lost rank 1"), std::string::npos);
  EXPECT_NE(text.find("step 2: backward"), std::string::npos);
}

}  // namespace
}  // namespace braid
