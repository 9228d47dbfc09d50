// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explain/explained_job.h"

namespace braid::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kRate = 50e6;  // bytes per second

// The network costs so much of each step.
ExplainedJob with_flows(size_t count, uint64_t exposed_ms, size_t nodes = 3) {
  ExplainedJob job(nodes);
  job.expose_ms(exposed_ms);
  job.add_flows(count, kRate);
  return job;
}

TEST(ExplainNetwork, WhereTheRailsAreFullTheNetworkBoundsTheStep) {
  ExplainedJob job = with_flows(4, 100);
  for (size_t i = 0; i < 3; ++i) {
    // 2 s are ten steps of 200 ms.
    for (NodeFacts::Flow& flow : job.node(i).flows) flow.bytes_sent += 75'000'000;
  }
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Network));
  const Finding network = job.find(Cause::Network);
  EXPECT_NEAR(network.seconds_per_step, 0.1005, 1e-9);
  EXPECT_THAT(network.text, HasSubstr("of 200 ms the trainers wait 100 ms for it; a sends 28.6 MiB "
                                      "a step, which fills the 1.6 Gbit/s that its flows deliver"));
  EXPECT_THAT(network.advice, HasSubstr("braidctl advise --job train"));
}

TEST(ExplainNetwork, ANodeWhoseRailIsSlowSetsThePace) {
  ExplainedJob job = with_flows(4, 100, 4);
  job.change_both(2, [](NodeFacts& node) {
    for (NodeFacts::Flow& flow : node.flows) flow.bytes_per_second /= 4;
  });
  EXPECT_THAT(job.causes(), ElementsAre(Cause::SlowRail));
  const Finding slow = job.find(Cause::SlowRail);
  EXPECT_EQ(slow.node, "c");
  EXPECT_THAT(slow.text, HasSubstr("The rails of c (eth0) deliver 0.4 Gbit/s, those of the other "
                                   "nodes 1.6 Gbit/s"));
}

TEST(ExplainNetwork, ARailThatIsSlowOnceIsNotBlamed) {
  ExplainedJob job = with_flows(4, 100, 4);
  for (NodeFacts::Flow& flow : job.node(2).flows) flow.bytes_per_second /= 4;
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Network));
}

TEST(ExplainNetwork, AFlowThatIsSlowerThanItsSiblingsIsNamed) {
  ExplainedJob job = with_flows(8, 50);
  job.change_both(1, [](NodeFacts& node) { node.flows[5].bytes_per_second /= 3; });
  const Finding slow = job.find(Cause::SlowFlow);
  EXPECT_EQ(slow.node, "b");
  EXPECT_EQ(slow.text,
            "Flow 5 of I/O loop 0 from b to c over eth0 delivers 0.133 Gbit/s, most of its "
            "siblings 0.4 Gbit/s");
  EXPECT_EQ(job.causes().front(), Cause::SlowFlow);
}

TEST(ExplainNetwork, OfSeveralSlowFlowsTheSlowestIsNamed) {
  ExplainedJob job = with_flows(8, 50);
  job.change_both(0, [](NodeFacts& node) { node.flows[2].bytes_per_second /= 3; });
  job.change_both(1, [](NodeFacts& node) { node.flows[5].bytes_per_second /= 4; });
  const Finding slow = job.find(Cause::SlowFlow);
  EXPECT_EQ(slow.node, "b");
  EXPECT_THAT(slow.text, HasSubstr("0.4 Gbit/s; 1 more flows of the job are slow"));
}

TEST(ExplainNetwork, ASlowFlowThatWasOpenedAgainIsSaidToBe) {
  ExplainedJob job = with_flows(8, 50);
  job.change_both(1, [](NodeFacts& node) {
    node.flows[5].bytes_per_second /= 3;
    node.flows[5].replaced_ago_ns = 12'000 * testing::kMs;
  });
  EXPECT_THAT(job.find(Cause::SlowFlow).text,
              HasSubstr("0.4 Gbit/s; it was opened again 12 s ago, on another port"));
}

// One flow of b is slow; between the looks, which are 2 s apart, TCP has sent so many segments
// again on it and on each of the others.
std::string slow_flow_that_lost(uint64_t own, uint64_t others) {
  ExplainedJob job = with_flows(8, 50);
  job.change_both(1, [](NodeFacts& node) {
    node.flows[5].bytes_per_second /= 3;
    for (NodeFacts::Flow& flow : node.flows) flow.segments_resent = 70;
  });
  for (NodeFacts::Flow& flow : job.node(1).flows) {
    flow.bytes_sent += 30'000'000;
    flow.segments_resent += others;
  }
  job.node(1).flows[5].bytes_sent -= 20'000'000;
  job.node(1).flows[5].segments_resent = 70 + own;
  return job.find(Cause::SlowFlow).text;
}

TEST(ExplainNetwork, ASlowFlowWhosePathLosesPacketsIsSaidTo) {
  EXPECT_THAT(
      slow_flow_that_lost(41, 0),
      HasSubstr("0.4 Gbit/s; its path loses packets: within 2.00 s TCP sent 41 segments again, "
                "more for each byte than on most of its siblings"));
  EXPECT_THAT(slow_flow_that_lost(41, 20), HasSubstr("TCP sent 41 segments again"))
      << "in relation to the bytes six times as many";
}

TEST(ExplainNetwork, LossesThatAreNotTheSlowFlowsOwnExplainNothing) {
  EXPECT_THAT(slow_flow_that_lost(0, 0), Not(HasSubstr("packets")));
  EXPECT_THAT(slow_flow_that_lost(2, 0), Not(HasSubstr("packets"))) << "too few";
  EXPECT_THAT(slow_flow_that_lost(41, 82), Not(HasSubstr("packets"))) << "the rail is full";
}

TEST(ExplainNetwork, LossesOfASlowFlowThatWasOpenedAgainCountFromThenOn) {
  ExplainedJob job = with_flows(8, 50);
  job.change_both(1, [](NodeFacts& node) {
    node.flows[5].bytes_per_second /= 3;
    node.flows[5].segments_resent = 900;
  });
  job.node(1).flows[5].segments_resent = 12;
  EXPECT_THAT(job.find(Cause::SlowFlow).text, HasSubstr("TCP sent 12 segments again"));
}

TEST(ExplainNetwork, ASlowFlowThatCostsNothingIsNotSpokenOf) {
  ExplainedJob job;
  job.add_flows(8, kRate);
  job.change_both(1, [](NodeFacts& node) { node.flows[5].bytes_per_second /= 3; });
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Compute));
}

TEST(ExplainNetwork, FlowsThatFailedLatelyAreNamedWithTheirError) {
  ExplainedJob job;
  job.add_flows(4, kRate);
  NodeFacts::Flow& first = job.node(0).flows[0];
  first.failed_ago_ns = 40'000 * kMs;
  first.error = "an older one";
  NodeFacts::Flow& second = job.node(0).flows[1];
  second.failed_ago_ns = 12'000 * kMs;
  second.state = "failed";
  second.error = "nothing acknowledged for 1.0 s";
  EXPECT_THAT(job.causes(), ElementsAre(Cause::LostFlow, Cause::Compute));
  EXPECT_EQ(job.find(Cause::LostFlow).text,
            "2 of the flows from a to b over eth0 failed, and some are not open again, within the "
            "last minute, the last one 12 s ago: nothing acknowledged for 1.0 s");
}

TEST(ExplainNetwork, FlowsThatFailedLongAgoAreForgotten) {
  ExplainedJob job;
  job.add_flows(4, kRate);
  job.node(0).flows[0].failed_ago_ns = 100'000 * kMs;
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Compute));
}

TEST(ExplainNetwork, ARailThatIsDownExplainsItsFlows) {
  ExplainedJob job;
  job.add_flows(4, kRate, "eth1");
  job.node(1).rails = {"eth0", "eth1"};
  job.node(1).rails_down = {"eth1"};
  for (NodeFacts::Flow& flow : job.node(1).flows) flow.state = "failed";
  EXPECT_THAT(job.causes(), ElementsAre(Cause::RailDown, Cause::Compute));
  const Finding down = job.find(Cause::RailDown);
  EXPECT_EQ(down.node, "b");
  EXPECT_THAT(down.text, HasSubstr("Rail eth1 of b is down (1 of 2 rails)"));
}

TEST(ExplainNetwork, JobsThatShareTheRailsAreNamed) {
  ExplainedJob job;
  job.expose_ms(100);
  job.node(1).job_bytes = 500'000'000;
  job.node(1).other_jobs_bytes = 700'000'000;
  EXPECT_THAT(job.causes(), ElementsAre(Cause::CompetingJobs));
  EXPECT_THAT(
      job.find(Cause::CompetingJobs).text,
      HasSubstr("share the rails of b: while this one reduced 476.8 MiB, they reduced 667.6 MiB"));
}

TEST(ExplainNetwork, AJobThatSendsLittleDoesNotCompete) {
  ExplainedJob job;
  job.expose_ms(100);
  job.node(1).job_bytes = 500'000'000;
  job.node(1).other_jobs_bytes = 7'000'000;
  EXPECT_THAT(job.causes(), Not(Contains(Cause::CompetingJobs)));
}

TEST(ExplainNetwork, ADaemonThatWaitsForProcessorsIsNamed) {
  ExplainedJob job;
  job.expose_ms(100);
  job.node(2).processor_ns = 300 * kMs;
  job.node(2).processor_wait_ns = 900 * kMs;
  EXPECT_THAT(job.causes(), ElementsAre(Cause::StarvedDaemon));
  const Finding starved = job.find(Cause::StarvedDaemon);
  EXPECT_EQ(starved.node, "c");
  EXPECT_THAT(starved.text,
              HasSubstr("of 2.00 s its threads ran for 300 ms and waited for 900 ms"));
}

TEST(ExplainNetwork, OfSeveralDaemonsTheOneThatWaitsMostComesFirst) {
  ExplainedJob job = with_flows(8, 100);
  job.change_both(1, [](NodeFacts& node) { node.flows[5].bytes_per_second /= 3; });
  for (size_t i = 0; i < 3; ++i) {
    job.node(i).processor_ns = 300 * kMs;
    job.node(i).processor_wait_ns = (700 + 100 * i) * kMs;
  }
  EXPECT_THAT(job.causes(), ElementsAre(Cause::StarvedDaemon)) << "and no flow is blamed";
  EXPECT_THAT(
      job.find(Cause::StarvedDaemon).text,
      HasSubstr("braidd on c waits for a processor: of 2.00 s its threads ran for 300 ms and "
                "waited for 900 ms; so do those on b, a"));
}

TEST(ExplainNetwork, ADaemonThatWaitsForWhatIsNoMatterIsNot) {
  ExplainedJob job;
  job.expose_ms(100);
  job.node(2).processor_ns = 10 * kMs;
  job.node(2).processor_wait_ns = 30 * kMs;
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Network));
}

TEST(ExplainNetwork, NodesThatDidNotAnswerAreNamed) {
  ExplainedJob job;
  job.after().missing = {"d"};
  EXPECT_THAT(job.explain()->missing, ElementsAre("d"));
}

}  // namespace
}  // namespace braid::testing
