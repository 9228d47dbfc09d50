// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_ras.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace braid {
namespace {

using Json = nlohmann::json;

NodeFacts node_facts(const std::string& name, const std::string& address,
                     std::vector<uint32_t> ranks, std::vector<int64_t> pids) {
  NodeFacts node;
  node.node = name;
  node.address = address;
  node.epoch = 3;
  node.world_size = 4;
  node.ranks = std::move(ranks);
  node.pids = std::move(pids);
  node.collectives = {{"all-reduce", 12}, {"barrier", 1}};
  return node;
}

class RasJsonTest : public ::testing::Test {
 protected:
  RasJsonTest() {
    status_.version = "1.2.3";
    DaemonStatus::Job job;
    job.name = "train";
    job.epoch = 3;
    job.state = "running";
    job.world_size = 4;
    job.nodes = {{"a", "10.0.0.1", {0, 2}}, {"b", "10.0.0.2", {1, 3}}};
    status_.jobs.push_back(job);
    JobFacts facts;
    facts.job = "train";
    facts.nodes.push_back(node_facts("a", "10.0.0.1", {0, 2}, {100, -1}));
    facts.nodes.push_back(node_facts("b", "10.0.0.2", {1, 3}, {0, 103}));
    jobs_.push_back(facts);
  }
  Json json() const { return Json::parse(ras_json(status_, jobs_, {1'000'000'000, 0.25})); }

  DaemonStatus status_;
  std::vector<JobFacts> jobs_;
};

TEST_F(RasJsonTest, HasTheFieldsOfRas) {
  const Json all = json();
  EXPECT_EQ(all["braid_version"], "1.2.3");
  EXPECT_EQ(all["communicators_count"], 1);
  EXPECT_EQ(all["ras"], (Json{{"collection_time_sec", 0.25}, {"timeouts_count", 0}}));
  EXPECT_EQ(all["timestamp"].get<std::string>().size(), std::string("2001-09-09 01:46:40").size());
  const Json& one = all["communicators"][0];
  EXPECT_EQ(one["hash"].get<std::string>().substr(0, 2), "0x");
  EXPECT_EQ(one["size"], 4);
  EXPECT_EQ(one["ranks_count"], 4);
  EXPECT_EQ(one["missing_ranks_count"], 0);
  EXPECT_EQ(one["missing_ranks"], Json::array());
  const Json& rank = one["ranks"][0];
  EXPECT_EQ(rank["host"], "10.0.0.1");
  EXPECT_EQ(rank["pid"], 100);
  EXPECT_EQ(rank["status"],
            (Json{{"init_state", 0}, {"async_error", 0}, {"finalize_called", false}}));
  EXPECT_EQ(rank["collective_counts"]["AllReduce"], 12);
  EXPECT_EQ(rank["collective_counts"]["AllGather"], 0);
  EXPECT_EQ(rank["collective_counts"]["Barrier"], 1);
}

TEST_F(RasJsonTest, ListsRanksInOrderAndSaysWhoHasLeft) {
  const Json json_now = json();
  const Json& ranks = json_now["communicators"][0]["ranks"];
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ranks[i]["rank"], i);
  EXPECT_EQ(ranks[1]["pid"], -1) << "of another PID namespace";
  EXPECT_FALSE(ranks[1]["status"]["finalize_called"]);
  EXPECT_EQ(ranks[2]["pid"], -1);
  EXPECT_TRUE(ranks[2]["status"]["finalize_called"]);
}

TEST_F(RasJsonTest, RanksOfANodeThatDoesNotAnswerAreMissing) {
  jobs_[0].nodes.pop_back();
  jobs_[0].missing = {"b"};
  const Json all = json();
  const Json& one = all["communicators"][0];
  EXPECT_EQ(one["ranks_count"], 2);
  EXPECT_EQ(one["missing_ranks_count"], 2);
  EXPECT_EQ(one["missing_ranks"][1],
            (Json{{"rank", 3},
                  {"host", "10.0.0.2"},
                  {"pid", -1},
                  {"status", {{"unresponsive", true}, {"considered_dead", false}}}}));
  EXPECT_EQ(all["ras"]["timeouts_count"], 1);
}

TEST_F(RasJsonTest, AJobThatStartsIsInProgress) {
  status_.jobs[0].state = "starting";
  EXPECT_EQ(json()["communicators"][0]["ranks"][0]["status"]["init_state"], 7);
}

TEST_F(RasJsonTest, TellsWhatIsPending) {
  jobs_[0].nodes[0].operations_pending = 1;
  jobs_[0].nodes[0].pending = {{"w", 5, "all-reduce", 1, 40, 7, false, {0, 2}}};
  const Json all = json();
  const Json& own = all["communicators"][0]["braid"];
  EXPECT_EQ(own["job"], "train");
  EXPECT_EQ(own["epoch"], 3);
  EXPECT_EQ(own["pending"][0]["tensor"], "w");
  EXPECT_EQ(own["pending"][0]["missing"][0]["rank"], 1);
}

TEST_F(RasJsonTest, IsJsonWithoutJobsAndWithHostileNames) {
  jobs_[0].job = "\xff\"\n";
  EXPECT_EQ(json()["communicators_count"], 1);
  jobs_.clear();
  EXPECT_EQ(json()["communicators"], Json::array());
}

}  // namespace
}  // namespace braid
