// SPDX-License-Identifier: Apache-2.0
// What a node tells of when it did what, how it asks others for it, and the files of failed jobs.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "job/manager_world.h"
#include "timeline/node_timeline.h"

namespace braid {
namespace {

class JobManagerTimelineTest : public testing::JobManagerTest {
 protected:
  static constexpr uint64_t kKey = 99;
  static constexpr int64_t kAheadNs = 3'000'000'000;  // of the other node's clock

  // One rank is here, the other on `other`; b is the coordinator.
  void open_job_of_b(const Peer& other) {
    add_trainer().open("train", 0, 2, b_.address);
    wait_for([&] { return !control_plane_.sent_to<proto::JoinJob>(b_.id).empty(); });
    const std::vector<MemberNode> nodes = {{self_, {0}}, {other, {1}}};
    hear(b_, make_job_start("train", 2, 4, kKey, nodes));
    wait_for([&] { return !control_plane_.sent_to<proto::JobReady>(b_.id).empty(); });
    hear(b_, make_job_go(kKey));
    wait_for([&] { return trainers_[0]->is_open; });
  }
  std::vector<JobTimeline> told() {
    wait_for([&] { return !trainers_[0]->status_reply.empty() && !trainers_[0]->reply_goes_on; });
    auto jobs = parse_job_timelines(trainers_[0]->status_reply);
    EXPECT_TRUE(jobs) << jobs.status().message() << trainers_[0]->status_reply;
    return jobs ? *jobs : std::vector<JobTimeline>{};
  }
  void finish_steps(uint64_t steps) {
    for (auto& trainer : trainers_)
      trainer->register_tensors({{"t0", 10}}, DataType::Float32, true);
    wait_for([&] {
      return std::ranges::all_of(
          trainers_, [](const auto& trainer) { return trainer->registered.size() == 2; });
    });
    for (uint64_t step = 0; step < steps; ++step) {
      for (auto& trainer : trainers_) {
        trainer->done.clear();
        trainer->submit(step + 100, trainer->registered.back(), step);
      }
      wait_for([&] {
        return std::ranges::all_of(trainers_,
                                   [](const auto& trainer) { return trainer->done.size() == 1; });
      });
      for (auto& trainer : trainers_) trainer->release(step + 100);
    }
  }
  // The latest of this kind to that node.
  template <typename Table>
  const Table& last_to(NodeId to, size_t count) {
    wait_for([&] { return control_plane_.sent_to<Table>(to).size() == count; });
    return *control_plane_.sent_to<Table>(to).back();
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
  finish_steps(9);
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
  finish_steps(4);
  std::optional<std::string> told;
  telling_->questions().timeline("train", 0, 2,
                                 [&](std::optional<std::string> json) { told = json; });
  run_until([&] { return told.has_value(); });
  const auto node = parse_node_timeline(*told);
  ASSERT_TRUE(node) << node.status().message();
  EXPECT_EQ(node->submits.size(), 2u);
}

TEST_F(JobManagerTimelineTest, ClocksAreComparedFirst) {
  const Peer c{30, "c", "10.0.0.30", 7410};
  control_plane_.add_peer(c);
  open_job_of_b(c);
  trainers_[0]->ask_timeline("train", 5);
  for (size_t round = 1; round <= ClockOffset::kRounds; ++round) {
    const proto::ClockQuery& query = last_to<proto::ClockQuery>(c.id, round);
    EXPECT_EQ(query.job_key(), kKey);
    EXPECT_TRUE(control_plane_.sent_to<proto::FactsQuery>(c.id).empty());
    const uint64_t there = clock_.now_ns() + kAheadNs;
    hear(b_, make_clock_reply(query, there, there));  // it was not asked
    hear(c, make_clock_reply(query, there, there));
    hear(c, make_clock_reply(query, there + 5, there + 5));  // a second time
  }
  const proto::FactsQuery& query = last_to<proto::FactsQuery>(c.id, 1);
  EXPECT_EQ(control_plane_.sent_to<proto::ClockQuery>(c.id).size(), ClockOffset::kRounds);
  ASSERT_NE(query.timeline(), nullptr);
  EXPECT_FALSE(query.of_all_nodes());
  EXPECT_EQ(query.timeline()->begin_ns(), 0u) << "no step has ended";
  EXPECT_GT(query.timeline()->end_ns(), clock_.now_ns() + kAheadNs / 2) << "by c's clock";
  EXPECT_GT(query.timeline()->bytes_max(), 1u << 20);
  NodeTimeline of_c;
  of_c.node = "c";
  const std::string json = to_json(of_c);
  hear(c, make_facts_reply(kKey, query.question(), json.substr(0, 10), 0, 2));
  hear(c, make_facts_reply(kKey, query.question(), json.substr(10), 1, 2));
  const auto jobs = told();
  ASSERT_EQ(jobs.at(0).nodes.size(), 2u);
  const JobTimeline::Node& node = jobs[0].nodes[1];
  EXPECT_EQ(node.timeline.node, "c");
  EXPECT_LE(static_cast<uint64_t>(std::abs(node.offset_ns - kAheadNs)), node.error_ns);
  EXPECT_LT(node.error_ns, 10'000'000'000u);
}

TEST_F(JobManagerTimelineTest, WhoseAnswerIsNoneIsMissing) {
  const Peer c{30, "c", "10.0.0.30", 7410};
  control_plane_.add_peer(c);
  open_job_of_b(c);
  trainers_[0]->ask_timeline("train", 5);
  // Time goes backwards there.
  for (size_t round = 1; round <= ClockOffset::kRounds; ++round)
    hear(c, make_clock_reply(last_to<proto::ClockQuery>(c.id, round), 10, 5));
  const auto jobs = told();
  EXPECT_EQ(jobs.at(0).missing, (std::vector<std::string>{"c"}));
  EXPECT_TRUE(control_plane_.sent_to<proto::FactsQuery>(c.id).empty());
}

TEST_F(JobManagerTimelineTest, TheCoordinatorIsAskedForAllNodes) {
  open_job_of_b(b_);
  trainers_[0]->ask_timeline("train", 500);
  const proto::FactsQuery& query = last_to<proto::FactsQuery>(b_.id, 1);
  EXPECT_TRUE(query.of_all_nodes());
  ASSERT_NE(query.timeline(), nullptr);
  EXPECT_EQ(query.timeline()->steps(), NodeQueries::kStepsMax);
  hear(b_, make_facts_reply(kKey, query.question(), R"({"job":"train","nodes":[],)", 0, 2));
  hear(b_, make_facts_reply(kKey, query.question(), R"("missing":["x"]})", 1, 2));
  EXPECT_EQ(told().at(0).missing, (std::vector<std::string>{"x"}));
}

TEST_F(JobManagerTimelineTest, OthersOfTheJobAreAnsweredAndStrangersAreNot) {
  open_job_of_b(b_);
  hear(b_, make_clock_query(kKey, 7, 123));
  const proto::ClockReply& reply = last_to<proto::ClockReply>(b_.id, 1);
  EXPECT_EQ(reply.asked_ns(), 123u);
  EXPECT_LE(reply.received_ns(), reply.answered_ns());
  EXPECT_LE(reply.answered_ns(), clock_.now_ns());
  hear(b_, make_facts_query(kKey, 7, false, TimelineSpan{0, 0, UINT64_MAX, 100'000}));
  const proto::FactsReply& told = last_to<proto::FactsReply>(b_.id, 1);
  const auto node = parse_node_timeline(told.json()->string_view());
  ASSERT_TRUE(node) << node.status().message();
  EXPECT_EQ(node->node, "here");
  EXPECT_EQ(node->peers, std::vector<std::string>{});

  const Peer stranger{30, "stranger", "10.0.0.30", 7410};
  control_plane_.add_peer(stranger);
  hear(stranger, make_clock_query(kKey, 8, 123));
  hear(stranger, make_facts_query(kKey, 9, false, TimelineSpan{0, 0, UINT64_MAX, 100'000}));
  settle();
  EXPECT_TRUE(control_plane_.sent_to<proto::ClockReply>(stranger.id).empty());
  EXPECT_TRUE(control_plane_.sent_to<proto::FactsReply>(stranger.id).empty());
  EXPECT_EQ(telling_->questions().messages_refused(), 2u);
}

TEST_F(JobManagerTimelineTest, FewAreMadeAtATime) {
  open_job_of_b(b_);
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
  EXPECT_NE(other.failure.message().find("timelines are being made already"), std::string::npos)
      << other.failure.message();
}

TEST_F(JobManagerTimelineTest, AJobThatFailsLeavesAFile) {
  open_job(2);
  finish_steps(3);
  trainers_[1]->hang_up();
  wait_for([&] { return files().size() == 1 && files().front().extension() == ".json"; });
  std::ifstream file(files().front());
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(text.find("lost rank 1"), std::string::npos);
  EXPECT_NE(text.find("step 2: backward"), std::string::npos);
}

}  // namespace
}  // namespace braid
