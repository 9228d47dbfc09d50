// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_fit.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

FittedCost stepped() {
  return *FittedCost::create(
      {{4096, 520192, {1e-3, 2e-9}, 127, 0.01}, {524288, 1048576, {2e-3, 2e-9}, 129, 0.005}},
      {{2, 1.5}});
}

TEST(FitTable, ShowsBandsStepsAndSlowdowns) {
  TimingLog log;
  log.ranks = 8;
  log.measurements.resize(300);
  EXPECT_EQ(fit_table(stepped(), log),
            "300 measurements with 8 ranks: T(M) = a + b·M\n"
            "\n"
            "BAND  FROM BYTES  TO BYTES  SIZES  a (s)      b (s/byte)  RESIDUAL\n"
            "1     4096        520192    127    1.000e-03  2.000e-09   1.00 %\n"
            "2     524288      1048576   129    2.000e-03  2.000e-09   0.50 %\n"
            "step at 524288 bytes (512.0 KiB): from 2.040 ms to 3.049 ms\n"
            "2 transfers at the same time: each takes 1.50 times as long\n");
}

TEST(FindSteps, LeavesOutBendsWithoutAStep) {
  const auto bent =
      FittedCost::create({{1, 1000, {1, 0.001}, 9, 0}, {1001, 9000, {0, 0.002}, 9, 0}}, {});
  EXPECT_TRUE(find_steps(*bent).empty());
}

TEST(ExtrapolationWarning, CountsMessagesOutside) {
  const std::vector<uint64_t> inside = {4096, 1'000'000};
  EXPECT_EQ(extrapolation_warning(stepped(), inside, "cost.json"), std::nullopt);
  const std::vector<uint64_t> outside = {1024, 8192, 4 << 20};
  EXPECT_EQ(extrapolation_warning(stepped(), outside, "cost.json"),
            "2 of 3 messages (1.0 KiB to 4.0 MiB) lie outside the sizes that cost.json was "
            "measured at (4.0 KiB to 1.0 MiB); their times are extrapolated");
}

}  // namespace
}  // namespace braid
