// SPDX-License-Identifier: Apache-2.0
// What a node tells of a job's steps, whom it asks about the other nodes, and whom it answers.
#include <limits>

#include "base/errors_testing.h"
#include "explain/node_facts.h"
#include "job/manager_world.h"

namespace braid {
namespace {

using testing::names;
using testing::TestTrainer;

class JobManagerFactsTest : public testing::JobManagerTest {
 protected:
  // Two ranks are on this node, the third is on `other`; b is the coordinator.
  void open_job_of_b(const Peer& other) { open_job_on({{self_, {0, 1}}, {other, {2}}}); }
  std::vector<JobFacts> answer_to(const std::string& job) {
    trainers_[0]->status_reply.clear();
    trainers_[0]->ask_facts(job);
    return told();
  }
  std::vector<JobFacts> told() {
    wait_for([&] { return !trainers_[0]->status_reply.empty(); });
    auto jobs = parse_job_facts(trainers_[0]->status_reply);
    EXPECT_TRUE(jobs) << jobs.status().message() << trainers_[0]->status_reply;
    return jobs ? *jobs : std::vector<JobFacts>{};
  }
};

TEST_F(JobManagerFactsTest, WithoutPlannedTensorsANodeTellsOfTheLatestOperations) {
  open_job(2);  // with one tensor that is not planned
  finish_steps(0, 3);
  const auto jobs = answer_to("train");
  ASSERT_EQ(jobs.size(), 1u);
  const NodeFacts& node = jobs[0].nodes.at(0);
  ASSERT_EQ(node.operations.size(), 3u);
  EXPECT_EQ(node.operations[0].tensor, "w");
  EXPECT_EQ(node.operations[0].step, 2u);
  EXPECT_EQ(node.operations[0].collective, "all-reduce");
  EXPECT_EQ(node.operations[0].wait_ns.size(), 2u);
}

TEST_F(JobManagerFactsTest, ANodeTellsOfTheLatestSteps) {
  open_job(2);
  register_planned();
  finish_steps(0, 5);
  const auto jobs = answer_to("train");
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].job, "train");
  EXPECT_TRUE(jobs[0].missing.empty());
  ASSERT_EQ(jobs[0].nodes.size(), 1u);
  const NodeFacts& node = jobs[0].nodes[0];
  EXPECT_EQ(node.node, "here");
  EXPECT_EQ(node.ranks, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(node.world_size, 2u);
  EXPECT_EQ(node.planned_bytes, 40u);
  EXPECT_EQ(node.planner, "first") << "no planner is configured";
  EXPECT_TRUE(node.operations.empty()) << "steps say more";
  ASSERT_EQ(node.steps.size(), 4u) << "of the first one nobody knows when it began";
  EXPECT_EQ(node.steps.front().step, 1u);
  EXPECT_GT(node.steps.back().step_ns, 0u);
  EXPECT_EQ(node.job_bytes, 5 * 40u);
  EXPECT_EQ(node.other_jobs_bytes, 0u);
  EXPECT_GT(node.processor_ns, 0u);
}

TEST_F(JobManagerFactsTest, OfAJobThatIsNotThereNothingIsTold) {
  open_job(2);
  EXPECT_TRUE(answer_to("another").empty());
  EXPECT_EQ(answer_to("").size(), 1u) << "all jobs";
}

TEST_F(JobManagerFactsTest, GradientsThatAreNotFiniteAreToldWithTheirRank) {
  open_job(2);
  register_planned();
  finish_steps(0, 3);
  trainers_[1]->floats()[3] = std::numeric_limits<float>::quiet_NaN();
  finish_steps(3, 6);
  const auto jobs = answer_to("train");
  const auto& not_finite = jobs.at(0).nodes.at(0).not_finite;
  ASSERT_EQ(not_finite.size(), 1u);
  EXPECT_EQ(not_finite[0].rank, 1u);
  EXPECT_EQ(not_finite[0].first_tensor, "t0");
  EXPECT_EQ(not_finite[0].first_step, 3u);
  EXPECT_EQ(not_finite[0].steps, 3u);
}

TEST_F(JobManagerFactsTest, TheCoordinatorIsAskedForAllNodes) {
  open_job_of_b(b_);
  trainers_[0]->ask_facts("train");
  const auto& query = last_to<proto::FactsQuery>(b_);
  EXPECT_TRUE(query.of_all_nodes());
  EXPECT_EQ(query.job_key(), kKey);
  const std::string all = R"({"job":"train","nodes":[{"node":"x"},{"node":"y"}],"missing":["z"]})";
  hear(b_, make_facts_reply(kKey, query.question() + 1, all));  // nobody has asked that
  hear(b_, make_facts_reply(kKey + 1, query.question(), all));
  settle();
  trainers_[0]->poll();
  EXPECT_EQ(trainers_[0]->status_reply, "");
  hear(b_, make_facts_reply(kKey, query.question(), all));
  wait_for([&] { return !trainers_[0]->status_reply.empty(); });
  EXPECT_EQ(trainers_[0]->status_reply, '[' + all + ']');
}

TEST_F(JobManagerFactsTest, WhereTheCoordinatorHasNoRanksNodesAskEachOther) {
  open_job_of_b(d_);
  trainers_[0]->ask_facts("train");
  const auto& query = last_to<proto::FactsQuery>(d_);
  EXPECT_FALSE(query.of_all_nodes());
  EXPECT_TRUE(control_plane_.sent_to<proto::FactsQuery>(b_.id).empty());
  hear(d_, make_facts_reply(kKey, query.question(), R"({"node":"d"})"));
  const auto jobs = told();
  ASSERT_EQ(jobs.front().nodes.size(), 2u);
  EXPECT_EQ(jobs.front().nodes[1].node, "d");
}

TEST_F(JobManagerFactsTest, WhatIsNoJsonIsNoAnswer) {
  open_job_of_b(d_);
  trainers_[0]->ask_facts("train");
  const uint64_t question = last_to<proto::FactsQuery>(d_).question();
  hear(d_, make_facts_reply(kKey, question, R"({"node":)"));
  const auto jobs = told();
  EXPECT_EQ(jobs.front().missing, (std::vector<std::string>{"d"}));
}

TEST_F(JobManagerFactsTest, WithoutAnAnswerOfTheCoordinatorANodeTellsItsOwn) {
  open_job_of_b(b_);
  const auto jobs = answer_to("train");
  ASSERT_EQ(jobs.size(), 1u);
  ASSERT_EQ(jobs[0].nodes.size(), 1u);
  EXPECT_EQ(jobs[0].nodes[0].node, "here");
  EXPECT_EQ(jobs[0].missing, (std::vector<std::string>{"b"}));
  EXPECT_EQ(jobs[0].nodes[0].planner, "") << "it does not coordinate the job";
}

TEST_F(JobManagerFactsTest, TheCoordinatorGetsAnAnswerAndNobodyElse) {
  open_job_of_b(b_);
  hear(b_, make_facts_query(kKey, 7, false));
  const auto& reply = last_to<proto::FactsReply>(b_);
  EXPECT_EQ(reply.question(), 7u);
  EXPECT_TRUE(parse_job_facts(R"([{"nodes":[)" + reply.json()->str() + "]}]"));

  control_plane_.add_peer(e_);  // a stranger
  hear(e_, make_facts_query(kKey, 8, false));
  hear(e_, make_facts_query(kKey, 9, true));
  hear(b_, make_facts_query(kKey, 10, true));  // b coordinates the job: it asks itself
  settle();
  EXPECT_TRUE(control_plane_.sent_to<proto::FactsReply>(e_.id).empty());
  EXPECT_EQ(telling_->questions().messages_refused(), 3u);
}

TEST_F(JobManagerFactsTest, AnExplanationIsMadeHere) {
  open_job(2);
  register_planned();
  const auto told = [this](const std::string& job) {
    trainers_[0]->explanation.clear();
    trainers_[0]->ask_explanation(job);
    wait_for([&] { return !trainers_[0]->explanation.empty(); });
    return trainers_[0]->explanation;
  };
  EXPECT_EQ(told("another"), "no job 'another' of yours runs on this node");
  EXPECT_TRUE(names(told("train"), {"job 'train'", "0 steps", "8"}));
  finish_steps(0, 12);
  EXPECT_TRUE(names(told("train"), {"job 'train': 2 ranks on 1 nodes; a step takes"}));
}

TEST_F(JobManagerFactsTest, WhoHasGoneNeedsNoAnswer) {
  open_job_of_b(b_);
  testing::TestTrainer asker(directory_.file("braidd.sock"));
  asker.ask_facts("train");
  const uint64_t question = last_to<proto::FactsQuery>(b_).question();
  asker.hang_up();
  settle();
  hear(b_, make_facts_reply(kKey, question, "{}"));
  settle();
}

}  // namespace
}  // namespace braid
