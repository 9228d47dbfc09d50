// SPDX-License-Identifier: Apache-2.0
#include "planner/timing_log.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

std::string error_of(std::string_view text) {
  const auto log = parse_timing_log(text, "x.log");
  return log ? "no error" : log.status().message();
}

TEST(ParseTimingLog, ReadsAllForms) {
  const auto log = parse_timing_log(
      "# OSU MPI Allreduce Latency Test\n\n8,4    82.28\n8,1024000 4028.15\r\n16\t70\n"
      R"({"collective": "all_reduce", "bytes": 65536, "dtype": "float32", "median_seconds": 0.5, "ranks": 8, "flows": 2})"
      "\n"
      R"({"bytes": 7, "median_seconds": 1e-3, "concurrent": 3})",
      "x.log");
  ASSERT_TRUE(log) << log.status().message();
  EXPECT_EQ(log->ranks, 8u);
  ASSERT_EQ(log->measurements.size(), 5u);
  EXPECT_EQ(log->measurements[0].bytes, 4u);
  EXPECT_DOUBLE_EQ(log->measurements[0].seconds, 82.28e-6);
  EXPECT_EQ(log->measurements[1].bytes, 1'024'000u);
  EXPECT_EQ(log->measurements[2].bytes, 16u);
  EXPECT_EQ(log->measurements[3], (CostMeasurement{65536, 0.5, 1}));
  EXPECT_EQ(log->measurements[4], (CostMeasurement{7, 1e-3, 3}));
}

TEST(ParseTimingLog, ErrorsNameTheLine) {
  EXPECT_EQ(error_of("4 1\nbytes 2\n"),
            "x.log:2: 'bytes 2' is no measurement; right is [RANKS,]BYTES MICROSECONDS, or a line "
            "of braid-bench --json");
  EXPECT_EQ(error_of("4 -1"), "x.log:1: -1e-06 seconds; right is a time of more than 0");
  EXPECT_EQ(error_of("8,4 1\n4,4 1"),
            "x.log:2: 4 ranks, where 8 were before; right is one number of ranks for one model");
  EXPECT_EQ(error_of(R"({"collective": "all_gather", "bytes": 1, "median_seconds": 1})"),
            "x.log:1: it is a time of \"all_gather\"; right are those of braid-bench all_reduce");
  EXPECT_EQ(error_of("# nothing\n"), "x.log: has no measurement");
  for (const char* text :
       {"4", "4 1 2", "4,", "4,5", "4 nan", "4 inf", "0 1", "-4 1", "4 1x", "99999999999,4 1",
        "99999999999999999999 1", R"({"bytes": 1})", R"({"bytes": 0, "median_seconds": 1})",
        R"({"bytes": 1, "median_seconds": -1})", R"({"bytes": 1, "median_seconds": 1, "ranks": 0})",
        R"({"bytes": 1, "median_seconds": 1)"}) {
    EXPECT_TRUE(error_of(text).starts_with("x.log:1: ")) << text << ": " << error_of(text);
  }
}

TEST(LoadTimingLogs, NamesTheFileThatIsAbsent) {
  const auto log = load_timing_logs({"/nowhere/x.log"});
  ASSERT_FALSE(log);
  EXPECT_TRUE(log.status().message().starts_with("/nowhere/x.log: "));
}

}  // namespace
}  // namespace braid
