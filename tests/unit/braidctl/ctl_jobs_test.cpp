// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_jobs.h"

#include <gtest/gtest.h>

#include "braidctl/ctl_explain.h"
#include "braidctl/ctl_flows.h"

namespace braid {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// Steps of 100 ms on one node after the other, whose ranks wait so long for their results.
JobFacts stepping(const std::string& name, std::vector<uint64_t> waits_ms, uint64_t steps = 10) {
  JobFacts job;
  job.job = name;
  for (uint32_t rank = 0; rank < waits_ms.size(); ++rank) {
    NodeFacts node;
    node.node = "node" + std::to_string(rank);
    node.world_size = static_cast<uint32_t>(waits_ms.size());
    node.ranks = {rank};
    node.planned_bytes = 1000;
    for (uint64_t step = 1; step <= steps; ++step) {
      node.steps.push_back({step,
                            100 * kMillisecond,
                            {30 * kMillisecond},
                            {40 * kMillisecond},
                            {waits_ms[rank] * kMillisecond}});
    }
    job.nodes.push_back(std::move(node));
  }
  return job;
}

TEST(JobsTable, SaysOfEachJobWhatBoundsIt) {
  const std::vector<JobFacts> jobs = {stepping("bert", {20, 0, 20}), stepping("young", {0}, 3),
                                      stepping("well\n", {0, 0})};
  EXPECT_EQ(
      jobs_table(job_lines(jobs, jobs, {})),
      "JOB     RANKS  NODES  STEP  TAKES   NETWORK       BOUND BY\n"
      "bert    3      3      10    100 ms  0.0 ms (0 %)  late rank: rank 1 on node1\n"
      "young   1      1      -     -       -             not known yet: braidctl explain says "
      "why\n"
      "well\\n  2      2      10    100 ms  0.0 ms (0 %)  compute\n");
  EXPECT_EQ(jobs_table({}), "no jobs\n");
}

TEST(JobsTable, NodesThatDoNotAnswerAreCounted) {
  JobFacts job = stepping("train", {0, 0});
  job.missing = {"node2"};
  EXPECT_EQ(job_lines({}, {job}, {}).front().nodes, 3u);
}

TEST(FindJobFacts, TheOnlyOneNeedsNoName) {
  const JobFacts one = stepping("one", {0}), two = stepping("two", {0});
  EXPECT_EQ(find_job_facts({one}, "")->job, "one");
  EXPECT_EQ(find_job_facts({one, two}, "two")->job, "two");
  EXPECT_EQ(find_job_facts({two, one}, "").status().message(),
            "2 jobs run on this node: say which one with --job: 'one', 'two'");
  EXPECT_EQ(find_job_facts({}, "").status().message(), "no job runs on this node");
}

TEST(FlowsTable, ShowsTheSlowestOfEachLinkFirst) {
  const std::vector<DaemonStatus::Flow> flows = {
      {"b", "out", 0, 0, "eth0", "open", 1024, 10, 0, "", 0.4, 50e6, 0.2, 17},
      {"b", "out", 0, 1, "eth0", "open", 512, 10, 2, "flow 1: reset", 1.4, 10e6},
      {"a", "in", 0, 0, "eth0", "open", 0, 2048, 0, "", 0, 0}};
  EXPECT_EQ(
      flows_table(flows),
      "PEER  DIRECTION  RAIL  LOOP.FLOW  STATE  DELIVERS     ROUND TRIP  PATH    RESENT  SENT  "
      "   RECEIVED  FAILURES\n"
      "a     in         eth0  0.0        open   -            -           -       -       0 B   "
      "   2.0 KiB   0\n"
      "b     out        eth0  0.1        open   0.08 Gbit/s  1.4 ms      -       -       512 B "
      "   10 B      2\n"
      "b     out        eth0  0.0        open   0.4 Gbit/s   0.4 ms      0.2 ms  17      1.0 Ki"
      "B  10 B      0\n"
      "\nwhat failed last:\n"
      "  b flow 0.1: flow 1: reset\n");
  EXPECT_EQ(flows_table({}), "no flows to other nodes\n");
}

}  // namespace
}  // namespace braid
