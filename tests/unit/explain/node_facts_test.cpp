// SPDX-License-Identifier: Apache-2.0
#include "explain/node_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "explain/explained_job.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string array_of(const std::string& node) {
  return R"([{"job":"train","nodes":[)" + node + R"(],"missing":["z"]}])";
}

TEST(NodeFacts, ArriveAsTheyWereTold) {
  ExplainedJob job(1, 2);
  job.add_flows(1, 3e6);
  job.node(0).flows.front().segments_resent = 7;
  job.node(0).not_finite = {{1, 4, 2, 9, "fc.weight"}};
  job.node(0).rails_down = {"eth1"};
  job.node(0).processor_wait_ns = 17;
  const auto jobs = parse_job_facts(array_of(to_json(job.node(0)))).value();
  EXPECT_EQ(jobs.front().job, "train");
  EXPECT_THAT(jobs.front().missing, ElementsAre("z"));
  const NodeFacts& told = jobs.front().nodes.front();
  EXPECT_EQ(to_json(told), to_json(job.node(0)));
  EXPECT_EQ(told.flows.front().segments_resent, 7u);
  EXPECT_EQ(told.steps.back().backward_ns, job.node(0).steps.back().backward_ns);
}

TEST(NodeFacts, NamesThatAreNoUtf8DoNoHarm) {
  NodeFacts facts;
  facts.not_finite = {{0, 1, 0, 0, "\xff\xfe"}};
  EXPECT_TRUE(parse_job_facts(array_of(to_json(facts))));
}

TEST(NodeFacts, FieldsOfOtherVersionsDoNoHarm) {
  const auto jobs = parse_job_facts(array_of(R"({"node":"a","what_comes_later":[1]})")).value();
  EXPECT_EQ(jobs.front().nodes.front().node, "a");
}

TEST(NodeFacts, WhatIsNoneIsAnError) {
  EXPECT_THAT(parse_job_facts("[{").status().message(),
              HasSubstr("does not understand the nodes' answers"));
  EXPECT_FALSE(parse_job_facts(array_of(R"({"node":7})")));
  EXPECT_FALSE(parse_job_facts(R"({"job":"train"})"));
}

TEST(NodeFacts, AnOperationMustSayAllOfItsRanks) {
  ExplainedJob job(1, 2);
  job.replace_steps_by_operations(3);
  EXPECT_TRUE(parse_job_facts(array_of(to_json(job.node(0)))));
  job.node(0).operations[1].wait_ns.pop_back();
  const auto jobs = parse_job_facts(array_of(to_json(job.node(0))));
  EXPECT_THAT(jobs.status().message(),
              HasSubstr("node 'a': all-reduce of 'stream' 999: there are 2 ranks, but 1 times"));
}

TEST(NodeFacts, AStepMustSayAllOfItsRanks) {
  ExplainedJob job(1, 2);
  job.node(0).steps[3].wait_ns.pop_back();
  const auto jobs = parse_job_facts(array_of(to_json(job.node(0))));
  EXPECT_THAT(jobs.status().message(),
              HasSubstr("node 'a': step 3: there are 2 ranks, but 2, 2 and 1 times"));
}

TEST(Explanation, AsJson) {
  ExplainedJob job;
  job.delay_ms(1, 0, 30);
  const auto json = nlohmann::json::parse(to_json(*job.explain()));
  EXPECT_EQ(json["job"], "train");
  EXPECT_EQ(json["findings"][0]["cause"], "late_rank");
  EXPECT_EQ(json["findings"][0]["rank"], 1);
  EXPECT_EQ(json["findings"][0]["node"], "b");
  EXPECT_NEAR(json["step_seconds"].get<double>(), 0.13, 1e-9);
}

}  // namespace
}  // namespace braid::testing
