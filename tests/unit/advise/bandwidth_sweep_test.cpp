// SPDX-License-Identifier: Apache-2.0
#include "advise/bandwidth_sweep.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/unit/advise/profiles.h"

namespace braid {
namespace {

AdviceOptions two_hosts() {
  AdviceOptions options;
  options.cost = {.nodes = 2, .encode_threads = 1, .chunk_bytes = 1};
  options.margin = 0;
  return options;
}

TEST(WireBandwidth, FollowsFromTheLargestAllReduces) {
  EXPECT_DOUBLE_EQ(wire_bandwidth(LinearCostModel({1, 1e-9}), 2), 8e9);
  EXPECT_DOUBLE_EQ(wire_bandwidth(LinearCostModel({1, 1e-9}), 4), 12e9);
  EXPECT_TRUE(std::isinf(wire_bandwidth(LinearCostModel({1, 0}), 4)));
}

TEST(BandwidthSweep, MoreBandwidthNeverTakesLonger) {
  const LinearCostModel wire({1e-4, 1e-9});
  const std::vector<CodecProfile> codecs = {profile("half", 0.5, 3e-10),
                                            profile("slow", 0.1, 1e-8)};
  const Workload workload = {{{0.01, 10'000'000}, {0.02, 50'000'000}}, 0.01};
  const BandwidthSweep sweep =
      sweep_bandwidths(workload, wire, codecs, **find_planner("exact"), two_hosts());
  ASSERT_EQ(sweep.step_seconds.size(), 3u);
  EXPECT_EQ(sweep.bandwidths.front(), 1e9);
  EXPECT_EQ(sweep.bandwidths.back(), 100e9);
  for (const auto& steps : sweep.step_seconds) {
    ASSERT_EQ(steps.size(), sweep.bandwidths.size());
    for (size_t i = 1; i < steps.size(); ++i) EXPECT_LE(steps[i], steps[i - 1] + 1e-12);
  }
}

TEST(BandwidthSweep, ACodecPaysUntilItsCodingTakesWhatTheWireTakes) {
  // At B bits per second a plain byte takes 8 / B seconds, as two nodes carry each byte once;
  // coding takes 8 / (10 Gbit/s). A chunk is nothing, and so is a startup.
  const LinearCostModel wire({0, 1e-9});
  const std::vector<CodecProfile> codecs = {profile("quarter", 0.25, 0.8e-9),
                                            profile("free", 0.25, 0), profile("useless", 1, 1e-6)};
  const Workload workload = {{{0.01, 1'000'000'000}}, 0};
  const BandwidthSweep sweep =
      sweep_bandwidths(workload, wire, codecs, **find_planner("wfbp"), two_hosts());
  ASSERT_TRUE(sweep.pays_up_to[1]);
  EXPECT_NEAR(*sweep.pays_up_to[1], 10e9, 0.01e9);
  EXPECT_FALSE(sweep.pays_up_to[2]) << "at all bandwidths";
  EXPECT_EQ(sweep.pays_up_to[3], kSweepBandwidthMin) << "nowhere";
}

}  // namespace
}  // namespace braid
