// SPDX-License-Identifier: Apache-2.0
#include "metrics/gpu_samples.h"

#include <map>

#include <gtest/gtest.h>

namespace braid {
namespace {

using Sampled = std::map<std::pair<Metric, std::vector<std::string>>, double>;

Sampled samples_of(const GpuFacts& gpu) {
  Sampled sampled;
  for (const MetricSample& sample : gpu_samples({gpu})) {
    EXPECT_EQ(sample.label_values.size(), metric_info(sample.metric).labels.size());
    EXPECT_TRUE(
        sampled.emplace(std::pair(sample.metric, sample.label_values), sample.value).second);
  }
  return sampled;
}

GpuFacts gpu() {
  GpuFacts facts;
  facts.index = 3;
  facts.uuid = "GPU-3";
  facts.name = "fake";
  facts.pci = "0000:17:00.0";
  facts.near_rails = {"eth0", "eth1"};
  return facts;
}

TEST(GpuSamples, AreInBaseUnits) {
  GpuFacts facts = gpu();
  facts.clock_mhz = 1140;
  facts.clock_max_mhz = 1980;
  facts.reasons = {{"heat", 1}};
  facts.temperature_celsius = 91;
  facts.utilization = 0.5;
  facts.ecc_uncorrected = 2;
  facts.pcie_width = 8;
  facts.processes = {{1}, {2}};
  const Sampled sampled = samples_of(facts);
  EXPECT_EQ(sampled.at({Metric::GpuInfo, {"3", "GPU-3", "fake", "0000:17:00.0", "", "eth0,eth1"}}),
            1);
  EXPECT_EQ(sampled.at({Metric::GpuUp, {"3"}}), 1);
  EXPECT_EQ(sampled.at({Metric::GpuClock, {"3"}}), 1.14e9);
  EXPECT_EQ(sampled.at({Metric::GpuSlowed, {"3", "heat"}}), 1);
  EXPECT_EQ(sampled.at({Metric::GpuSlowed, {"3", "power_cap"}}), 0);
  EXPECT_EQ(sampled.at({Metric::GpuTemperature, {"3"}}), 91);
  EXPECT_EQ(sampled.at({Metric::GpuUtilization, {"3"}}), 0.5);
  EXPECT_EQ(sampled.at({Metric::GpuEccErrors, {"3", "uncorrected"}}), 2);
  EXPECT_EQ(sampled.at({Metric::GpuPcieWidth, {"3"}}), 8);
  EXPECT_EQ(sampled.at({Metric::GpuProcesses, {"3"}}), 2);
}

TEST(GpuSamples, WhatIsNotKnownHasNone) {
  const Sampled sampled = samples_of(gpu());
  for (const Metric metric : {Metric::GpuClock, Metric::GpuTemperature, Metric::GpuUtilization,
                              Metric::GpuMemory, Metric::GpuPcieReplays, Metric::GpuPower})
    EXPECT_FALSE(sampled.contains({metric, {"3"}})) << metric_info(metric).name;
  EXPECT_FALSE(sampled.contains({Metric::GpuEccErrors, {"3", "corrected"}}));
}

TEST(GpuSamples, OneThatDoesNotAnswerIsDown) {
  GpuFacts facts = gpu();
  facts.error = "GPU is lost";
  facts.xid_errors = 1;
  const Sampled sampled = samples_of(facts);
  EXPECT_EQ(sampled.at({Metric::GpuUp, {"3"}}), 0);
  EXPECT_EQ(sampled.at({Metric::GpuXidErrors, {"3"}}), 1);
  EXPECT_FALSE(sampled.contains({Metric::GpuProcesses, {"3"}}));
}

}  // namespace
}  // namespace braid
