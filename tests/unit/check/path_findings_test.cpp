// SPDX-License-Identifier: Apache-2.0
#include "check/path_findings.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

PathEnd end_of(const std::string& name) {
  PathEnd end;
  end.name = name;
  end.address = name + ".example";
  end.port = 7410;
  end.version = "1.2.3";
  end.unit_bytes = 8 << 20;
  end.chunk_bytes = 128 << 10;
  end.io_loops = 2;
  end.flows_per_link = 4;
  end.rails = {{"eth0", "192.0.2.1", 9000, 25'000, true}};
  return end;
}

PathRate rate_of(double gbit) {
  PathRate rate;
  rate.flows = 8;
  rate.nanoseconds = 1'000'000'000;
  rate.bytes = static_cast<uint64_t>(gbit * 1e9 / 8);
  rate.segments = 100'000;
  rate.segments_resent = 10;
  return rate;
}

// Two nodes between which all is well.
PathFacts well() {
  PathFacts facts;
  facts.asked = "b:7410";
  facts.here = end_of("a");
  facts.there = end_of("b");
  facts.round_trip_ns = 120'000;
  facts.clock_ahead_ns = -3'000'000;
  facts.one_to_there = rate_of(5);
  facts.one_to_here = rate_of(4.9);
  facts.all_to_there = rate_of(20);
  facts.all_to_here = rate_of(19);
  return facts;
}

PathFinding finding(const PathFacts& facts, const std::string& check) {
  for (const PathFinding& one : path_findings(facts)) {
    if (one.check == check) return one;
  }
  ADD_FAILURE() << "no check " << check;
  return {};
}

// That check alone is bad, and says this.
void expect_bad(const PathFacts& facts, const std::string& check,
                const ::testing::Matcher<std::string>& says) {
  const auto findings = path_findings(facts);
  EXPECT_FALSE(are_good(findings));
  for (const PathFinding& one : findings)
    EXPECT_EQ(one.is_good, one.check != check) << one.check << ": " << one.text;
  EXPECT_THAT(finding(facts, check).text, says);
}

TEST(PathFindings, AllAreGoodWhereAllIsWell) {
  const auto findings = path_findings(well());
  EXPECT_TRUE(are_good(findings));
  EXPECT_EQ(findings.size(), 9U);
  EXPECT_THAT(finding(well(), "reach").text, HasSubstr("'b' (b.example:7410), round trip 120 us"));
  EXPECT_THAT(finding(well(), "rate").text,
              HasSubstr("to there 5.00 Gbit/s one flow, 20.00 Gbit/s all 8; back 4.90"));
  EXPECT_THAT(finding(well(), "clock").text, HasSubstr("3.0 ms behind this node's"));
}

TEST(PathFindings, OfANodeThatIsNotReachedThereIsOne) {
  PathFacts facts;
  facts.error = "cannot connect to the daemon at b:7410: connection refused";
  const auto findings = path_findings(facts);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_FALSE(findings.front().is_good);
  EXPECT_EQ(findings.front().text, facts.error);
}

TEST(PathFindings, TheNodeMustBeWhereItSaysThatItIs) {
  PathFacts facts = well();
  facts.to_there.control = "connection refused";
  expect_bad(facts, "reach", AllOf(HasSubstr("b:7410"), HasSubstr("node.address there")));
}

TEST(PathFindings, TheOtherNodeMustReachThisOne) {
  PathFacts facts = well();
  facts.to_here.control = "no answer within 5000 ms";
  expect_bad(facts, "back",
             AllOf(HasSubstr("node 'b' does not reach this node at 'a' (a.example:7410)"),
                   HasSubstr("let TCP port 7410 of this node through")));
}

TEST(PathFindings, VersionsThatDifferAreNamed) {
  PathFacts facts = well();
  facts.there.version = "1.1.0";
  expect_bad(
      facts, "version",
      AllOf(HasSubstr("1.2.3 here and 1.1.0 on node 'b'"), HasSubstr("upgrade the older one")));
}

TEST(PathFindings, SettingsThatJobsNeedAlikeAreNamed) {
  PathFacts facts = well();
  facts.there.io_loops = 4;
  expect_bad(facts, "settings", HasSubstr("transport.io_threads is 2 here and 4 there"));
}

TEST(PathFindings, AClockThatIsMinutesOffIsNamed) {
  PathFacts facts = well();
  facts.clock_ahead_ns = 300'000'000'000;
  expect_bad(facts, "clock",
             AllOf(HasSubstr("node 'b' is 5 minutes ahead of this node's"), HasSubstr("chrony")));
}

TEST(PathFindings, AClockIsNotBlamedForWhatMayBeAnError) {
  PathFacts facts = well();
  facts.clock_ahead_ns = 1'500'000'000;
  facts.clock_error_ns = 600'000'000;
  EXPECT_TRUE(are_good(path_findings(facts)));
}

TEST(PathFindings, RailsThatDifferAreNamed) {
  PathFacts facts = well();
  facts.there.rails.front().mtu = 1500;
  expect_bad(facts, "mtu",
             HasSubstr("MTU eth0 9000 (25 Gbit/s) here, eth0 1500 (25 Gbit/s) there"));
  facts = well();
  facts.there.rails.front().speed_mbit = 10'000;
  expect_bad(facts, "mtu", HasSubstr("links of unlike speed"));
  facts = well();
  facts.there.rails.front().is_up = false;
  expect_bad(facts, "mtu", HasSubstr("rail eth0 has no carrier there"));
}

TEST(PathFindings, FlowsMustOpenInBothDirections) {
  PathFacts facts = well();
  facts.to_here.flows = "not done within 5000 ms";
  facts.one_to_there = facts.one_to_here = facts.all_to_there = facts.all_to_here = std::nullopt;
  expect_bad(
      facts, "flows",
      AllOf(HasSubstr("from node 'b' to here: not done within"), HasSubstr("transport.port")));
}

TEST(PathFindings, ADirectionThatIsMuchSlowerIsNamed) {
  PathFacts facts = well();
  facts.all_to_here = rate_of(9);
  expect_bad(facts, "rate", HasSubstr("back is less than half as fast"));
}

TEST(PathFindings, WhereNoChunkArrivesTheMtuIsSuspected) {
  PathFacts facts = well();
  facts.one_to_there->bytes = 0;
  const PathFinding rate = finding(facts, "rate");
  EXPECT_FALSE(rate.is_good);
  EXPECT_THAT(rate.text,
              AllOf(HasSubstr("to there: no chunk arrived within 1.0 s"), HasSubstr("ping -M do")));
}

TEST(PathFindings, FlowsThatFailMeanwhileAreNamed) {
  PathFacts facts = well();
  facts.all_to_here->flows_failed = 2;
  facts.all_to_here->flow_error = "flow 3: connection reset";
  EXPECT_THAT(finding(facts, "rate").text,
              HasSubstr("back: 2 flows failed meanwhile, the last one so: flow 3"));
}

TEST(PathFindings, MuchThatWasSentAgainIsLoss) {
  PathFacts facts = well();
  facts.all_to_there->segments_resent = 5'000;
  expect_bad(facts, "loss", HasSubstr("to there 5.00 %, back 0.01 % sent again"));
}

TEST(PathFindings, WithoutTcpNothingIsSaidOfLoss) {
  PathFacts facts = well();
  for (auto* rate :
       {&facts.one_to_there, &facts.one_to_here, &facts.all_to_there, &facts.all_to_here})
    (*rate)->segments = (*rate)->segments_resent = 0;
  EXPECT_TRUE(are_good(path_findings(facts)));
  EXPECT_THAT(finding(facts, "loss").text, HasSubstr("not known"));
}

}  // namespace
}  // namespace braid
