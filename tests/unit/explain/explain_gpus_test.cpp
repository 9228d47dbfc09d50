// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explain/explained_job.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kNow = 1'795'842'180;  // 2026-11-28 05:03
constexpr uint64_t kSince = kNow - 3600;  // 04:03

// A job of which each rank computes on a GPU of its own, all of them well.
class ExplainGpus : public ::testing::Test {
 protected:
  ExplainGpus() {
    for (uint32_t i = 0; i < 3; ++i) {
      GpuFacts gpu;
      gpu.index = 4;
      gpu.read_at = kNow;
      gpu.clock_mhz = gpu.clock_max_mhz = 1980;
      gpu.temperature_celsius = 60;
      gpu.utilization = 0.95;
      gpu.pcie_width = gpu.pcie_width_max = 16;
      gpu.pcie_generation = gpu.pcie_generation_max = 5;
      gpu.processes = {{100 + i, 1, "train", i}};
      job_.node(i).gpus = {gpu};
    }
  }
  GpuFacts& gpu(size_t node) { return job_.node(node).gpus.at(0); }
  void slow_down(size_t node, std::string_view reason, uint32_t mhz = 1140) {
    gpu(node).clock_mhz = mhz;
    gpu(node).reasons = {{std::string(reason), kSince}};
  }

  ExplainedJob job_;
};

TEST_F(ExplainGpus, ThatAreWellAreNotSpokenOf) {
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute));
}

TEST_F(ExplainGpus, HeatOfALateRanksGpuIsNamedBeforeTheRank) {
  job_.delay_ms(2, 0, 41);
  slow_down(2, kSlowedByHeat);
  gpu(2).temperature_celsius = 91;
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::GpuHeat, Cause::LateRank));
  const Finding heat = job_.find(Cause::GpuHeat);
  EXPECT_EQ(heat.text,
            "Rank 2's GPU (4 of c) is slowed down by heat: 1,140 of 1,980 MHz since 04:03 UTC, at "
            "91 °C");
  EXPECT_EQ(heat.rank, 2u);
  EXPECT_EQ(heat.node, "c");
  EXPECT_NEAR(heat.seconds_per_step, 0.041, 1e-9);
}

TEST_F(ExplainGpus, HeatOfARankThatIsNotLateCostsNothing) {
  job_.delay_ms(2, 0, 41);
  slow_down(1, kSlowedByHeat);
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::LateRank, Cause::GpuHeat));
  EXPECT_EQ(job_.find(Cause::GpuHeat).seconds_per_step, 0);
}

TEST_F(ExplainGpus, HeatThatLowersNoClockIsNotSpokenOf) {
  slow_down(1, kSlowedByHeat, 1950);
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute));
}

TEST_F(ExplainGpus, WhereAllAreSlowedTheStepIsLonger) {
  for (size_t node = 0; node < 3; ++node) slow_down(node, kSlowedByHeat, node == 1 ? 1485 : 1140);
  const std::vector<Finding> findings = job_.explain().value().findings;
  ASSERT_EQ(findings.size(), 3u);
  // The best of them has three quarters of its clock; computing takes 90 ms.
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.cause, Cause::GpuHeat);
    EXPECT_NEAR(finding.seconds_per_step, 0.0225, 1e-9);
  }
}

TEST_F(ExplainGpus, APowerCapThatAllHaveIsUsual) {
  for (size_t node = 0; node < 3; ++node) slow_down(node, kSlowedByPowerCap, 1600);
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute));
}

TEST_F(ExplainGpus, APowerCapThatOneHasIsNamed) {
  job_.delay_ms(0, 0, 30);
  for (size_t node = 0; node < 3; ++node) slow_down(node, kSlowedByPowerCap, 1800);
  slow_down(0, kSlowedByPowerCap, 1300);
  gpu(0).power_watts = 349.6;
  gpu(0).power_limit_watts = 350;
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::GpuPower, Cause::LateRank));
  EXPECT_THAT(job_.find(Cause::GpuPower).text,
              HasSubstr("is slowed down by its power cap: 1,300 of 1,980 MHz since 04:03 UTC, at "
                        "350 of 350 W"));
}

TEST_F(ExplainGpus, APowerBrakeIsNeverUsual) {
  slow_down(0, kSlowedByPowerBrake);
  EXPECT_THAT(job_.find(Cause::GpuPower).text, HasSubstr("a power brake"));
}

TEST_F(ExplainGpus, OtherSlowdownsSayWhoWantsThem) {
  job_.delay_ms(0, 0, 30);
  slow_down(0, kSlowedByHardware);
  EXPECT_THAT(job_.find(Cause::GpuSlowdown).text, HasSubstr("slowed down by its hardware"));
  slow_down(0, kSlowedBySetting);
  EXPECT_THAT(job_.find(Cause::GpuSlowdown).text, HasSubstr("clocks that somebody has set"));
}

TEST_F(ExplainGpus, ALostGpuComesFirst) {
  job_.delay_ms(2, 0, 41);
  gpu(1).error = "GPU is lost";
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::GpuLost, Cause::LateRank));
  EXPECT_EQ(job_.find(Cause::GpuLost).text, "Rank 1's GPU (4 of b) does not answer: GPU is lost");
}

TEST_F(ExplainGpus, ARecentXidOfTheHardwareIsNamed) {
  gpu(1).last_xid = 79;
  gpu(1).last_xid_at = kNow - 60;
  EXPECT_EQ(job_.find(Cause::GpuXid).text,
            "Rank 1's GPU (4 of b) reported Xid 79 at 05:02 UTC: the GPU has fallen off the bus");
  gpu(1).last_xid_at = kNow - 3601;
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute)) << "long ago";
  gpu(1).last_xid_at = kNow;
  gpu(1).last_xid = 31;
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute)) << "a program's own fault";
}

TEST_F(ExplainGpus, ARecentUncorrectableErrorIsNamed) {
  gpu(0).ecc_uncorrected = 3;
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute)) << "they were there before";
  gpu(0).ecc_uncorrected_at = kNow;
  EXPECT_EQ(job_.find(Cause::GpuEcc).text,
            "Rank 0's GPU (4 of a) had an uncorrectable memory error at 05:03 UTC (3 since its "
            "driver was loaded)");
}

TEST_F(ExplainGpus, FewerLanesAreNamedAndALowGenerationOfABusyGpu) {
  gpu(0).pcie_width = 8;
  EXPECT_THAT(job_.find(Cause::GpuPcie).text, HasSubstr("uses 8 of 16 lanes of PCIe"));
  gpu(0).pcie_width = 16;
  gpu(0).pcie_generation = 3;
  EXPECT_THAT(job_.find(Cause::GpuPcie).text,
              HasSubstr("generation 3, and could use generation 5"));
  gpu(0).utilization = 0;
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute)) << "it rests";
}

TEST_F(ExplainGpus, OthersOnALateRanksGpuAreCounted) {
  gpu(1).other_processes = 1;
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute));
  job_.delay_ms(1, 0, 30);
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::GpuShared, Cause::LateRank));
  EXPECT_EQ(job_.find(Cause::GpuShared).text,
            "Rank 1's GPU (4 of b) is shared with 1 other process");
}

TEST_F(ExplainGpus, AGpuOfOtherJobsAloneIsNotSpokenOf) {
  GpuFacts other = gpu(0);
  other.index = 5;
  other.processes.clear();
  other.other_processes = 1;
  other.error = "GPU is lost";
  job_.node(0).gpus.push_back(other);
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute));
}

TEST_F(ExplainGpus, WhereNobodyKnowsWhoseItIsThatIsSaid) {
  slow_down(0, kSlowedByHeat);
  gpu(0).processes.clear();
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute)) << "nothing computes on it";
  gpu(0).other_processes = 1;
  const Finding heat = job_.find(Cause::GpuHeat);
  EXPECT_THAT(heat.text, HasSubstr("GPU 4 of a (which rank computes on it is not known)"));
  EXPECT_FALSE(heat.rank);
  EXPECT_EQ(heat.seconds_per_step, 0);
}

TEST_F(ExplainGpus, SeveralRanksMayShareOne) {
  job_.delay_ms(0, 0, 30);
  gpu(0).processes.push_back({200, 1, "train", 7});
  slow_down(0, kSlowedByHeat);
  const Finding heat = job_.find(Cause::GpuHeat);
  EXPECT_THAT(heat.text, HasSubstr("The GPU of ranks 0, 7 (4 of a)"));
  EXPECT_NEAR(heat.seconds_per_step, 0.030, 1e-9);
}

TEST(ExplainManyGpus, OfOneCauseAFewAreToldAndTheOthersCounted) {
  ExplainedJob job(5);
  for (uint32_t i = 0; i < 5; ++i) {
    GpuFacts gpu;
    gpu.pcie_width = 8;
    gpu.pcie_width_max = 16;
    gpu.processes = {{100 + i, 1, "train", i}};
    job.node(i).gpus = {gpu};
  }
  const std::vector<Finding> findings = job.explain().value().findings;
  ASSERT_EQ(findings.size(), 4u);  // and compute
  EXPECT_THAT(findings[0].text, Not(HasSubstr("more GPUs")));
  EXPECT_THAT(findings[2].text, HasSubstr("; 2 more GPUs of the job have the same"));
}

TEST_F(ExplainGpus, AJobWithoutStepsHearsOfThem) {
  job_.replace_steps_by_operations(20);
  for (size_t number = 0; number < 20; number += 2) job_.delay_operation_ms(1, 0, number, 5);
  slow_down(1, kSlowedByHeat);
  EXPECT_THAT(job_.causes(), ::testing::IsSupersetOf({Cause::GpuHeat, Cause::LateRank}));
  EXPECT_GT(job_.find(Cause::GpuHeat).seconds_per_step, 0);
}

}  // namespace
}  // namespace braid::testing
