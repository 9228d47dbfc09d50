// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_tune.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr const char* kValues =
    R"({"flows_per_link":8,"streams":4,"unit_bytes":8388608,"chunk_bytes":131072,)"
    R"("window_bytes":524288,"direct_bytes":1,"two_hops_bytes":1048576,"halving_bytes":1,"hierarchical":2})";

std::string job_with(const std::string& rest) { return R"([{"job":"train",)" + rest + "}]"; }

std::string tuning_of(const std::string& set, const std::string& reason) {
  const std::string values = kValues;
  return R"({"set":")" + set + R"(","tensors":4,"bytes":33554432,"number":2,"state":"over",)" +
         R"("reason":")" + reason + R"(","steps_measured":67,"gain":3.85,)" +
         R"("known":{"is_same_job":false,"distance":0.5,"gain":2.0},"incumbent":)" + values +
         R"(,"winner":)" + values +
         R"(,"trials":[{"purpose":"probe","searcher":"grid","steps":1,"seconds":1.5,"values":)" +
         values + "}]}";
}

std::string job_tuned(const std::string& tunings) {
  return job_with(R"("coordinator":"node0","is_coordinator":true,"settings":null,"tunings":[)" +
                  tunings + "]");
}

TEST(TuneTables, ShowTrialsAndWinner) {
  const auto text = tune_tables(job_tuned(tuning_of("00c0ffee00c0ffee", ""))).value();
  EXPECT_NE(text.find("set 00c0ffee00c0ffee (4 tensors, 32.0 MiB), tuning 2: over; 1 trials, 67 "
                      "steps measured, gain 3.85"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("because"), std::string::npos);
  EXPECT_NE(text.find("known before, of a job at distance 0.50: gain 2.00"), std::string::npos);
  EXPECT_NE(text.find("probe"), std::string::npos);
  EXPECT_NE(text.find("1.500 s"), std::string::npos);
  EXPECT_NE(text.find("(chosen)"), std::string::npos);
}

TEST(TuneTables, ShowEverySet) {
  const auto text = tune_tables(job_tuned(tuning_of("00000000000000aa", "") + "," +
                                          tuning_of("00000000000000bb", "why")))
                        .value();
  const size_t second = text.find("set 00000000000000bb");
  ASSERT_NE(second, std::string::npos);
  EXPECT_LT(text.find("set 00000000000000aa"), second);
  EXPECT_GT(text.find("because why"), second);
}

TEST(TuneTables, OtherNodesSayWhomToAsk) {
  const auto text =
      tune_tables(
          job_with(R"("coordinator":"node0","is_coordinator":false,"tunings":null,"settings":)" +
                   std::string(kValues)))
          .value();
  EXPECT_NE(text.find("node node0: ask there"), std::string::npos);
  EXPECT_NE(text.find("flows_per_link 8 streams 4"), std::string::npos);
  EXPECT_NE(text.find("direct_bytes - two_hops_bytes 1.0 MiB halving_bytes - hierarchical yes"),
            std::string::npos);
}

TEST(TuneTables, WithoutTuningSaySo) {
  const auto text =
      tune_tables(
          job_with(R"("coordinator":"node0","is_coordinator":true,"tunings":[],"settings":null)"))
          .value();
  EXPECT_EQ(text, "job train\nnothing is tuned, or not yet\n");
  EXPECT_EQ(*tune_tables("[]"), "no job runs on this node\n");
}

TEST(TuneTables, AnAnswerOfAnotherVersionIsAnError) {
  for (const char* answer : {"", "[1]", R"([{"job":"train"}])"}) {
    const auto text = tune_tables(answer);
    ASSERT_FALSE(text.is_ok()) << answer;
    EXPECT_EQ(text.status().code(), StatusCode::Protocol);
  }
}

}  // namespace
}  // namespace braid
