// SPDX-License-Identifier: Apache-2.0
#include "planning/operation_meter.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kFirstNs = 5'000'000'000;

OperationKey key(uint64_t tensor) { return {1, tensor, 0}; }

// What the node has carried, and when.
struct Moment {
  uint64_t after_ns = 0;
  uint64_t carried = 0;
};

// An operation from its start to its end.
void run(OperationMeter& meter, const OperationKey& one, uint64_t bytes, Moment go, Moment done) {
  meter.on_start(one, bytes);
  meter.on_go(one, kFirstNs + go.after_ns, go.carried);
  meter.on_done(one, kFirstNs + done.after_ns, done.carried);
}

TEST(OperationMeterTest, TimeBeginsWhenTheNextNodeIsReady) {
  OperationMeter meter(2);
  run(meter, key(1), 1000, {0, 500}, {70, 1500});
  const auto samples = meter.take();
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].bytes, 1000u);
  EXPECT_EQ(samples[0].nanoseconds, 70u);
  EXPECT_TRUE(meter.take().empty());
}

TEST(OperationMeterTest, WhatTheNetworkCarriesMeanwhileCounts) {
  OperationMeter meter(4);
  meter.on_start(key(1), 4000);
  meter.on_start(key(2), 40);
  meter.on_go(key(1), kFirstNs, 4000);
  meter.on_go(key(2), kFirstNs, 6000);
  meter.on_done(key(2), kFirstNs + 60, 7000);
  meter.on_done(key(1), kFirstNs + 90, 10'000);
  const auto samples = meter.take();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].bytes, 1000u);
  EXPECT_EQ(samples[1].bytes, 6000u);
}

TEST(OperationMeterTest, ItsOwnBytesCountAtLeast) {
  OperationMeter meter(4);
  run(meter, key(1), 4000, {0, 6000}, {60, 6000});  // the others were ahead of it
  EXPECT_EQ(meter.take().at(0).bytes, 4000u);
}

TEST(OperationMeterTest, OneNodeCarriesWhatItReduces) {
  OperationMeter meter(1);
  for (const uint64_t tensor : {1, 2, 3}) meter.on_start(key(tensor), 100);
  meter.on_go(key(1), kFirstNs, 0);
  meter.on_go(key(2), kFirstNs, 0);
  meter.on_done(key(1), kFirstNs + 10, 0);
  meter.on_go(key(3), kFirstNs + 10, 0);
  meter.on_done(key(2), kFirstNs + 20, 0);
  meter.on_done(key(3), kFirstNs + 30, 0);
  const auto samples = meter.take();
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].bytes, 100u);
  EXPECT_EQ(samples[1].bytes, 200u);
  EXPECT_EQ(samples[2].bytes, 200u);
}

TEST(OperationMeterTest, OperationsAreNamedAlikeOnAllNodes) {
  std::vector<uint64_t> names;
  for (const OperationKey& one : {key(1), key(2), OperationKey{1, 1, 1}, key(1)}) {
    OperationMeter meter(2);
    run(meter, one, 8, {0, 0}, {1, 8});
    names.push_back(meter.take().at(0).id);
  }
  EXPECT_EQ(names[0], names[3]);
  EXPECT_NE(names[0], names[1]);
  EXPECT_NE(names[0], names[2]);
}

TEST(OperationMeterTest, WhatWasNeverStartedOrHasNotGoneIsNotMeasured) {
  OperationMeter meter(2);
  meter.on_go(key(1), kFirstNs, 0);
  meter.on_done(key(1), kFirstNs + 10, 0);
  meter.on_start(key(2), 100);
  meter.on_done(key(2), kFirstNs + 10, 100);
  meter.on_done(key(2), kFirstNs + 20, 100);
  EXPECT_TRUE(meter.take().empty());
}

TEST(OperationMeterTest, GoingTwiceIsGoingOnce) {
  OperationMeter meter(2);
  meter.on_start(key(1), 100);
  meter.on_go(key(1), kFirstNs, 0);
  meter.on_go(key(1), kFirstNs + 50, 1000);
  meter.on_done(key(1), kFirstNs + 100, 1000);
  const auto samples = meter.take();
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].nanoseconds, 100u);
  EXPECT_EQ(samples[0].bytes, 1000u);
}

TEST(OperationMeterTest, NothingInNoTimeIsNoMeasurement) {
  OperationMeter meter(2);
  run(meter, key(1), 0, {0, 0}, {10, 0});
  run(meter, key(2), 10, {10, 0}, {10, 0});
  EXPECT_TRUE(meter.take().empty());
}

TEST(OperationMeterTest, OfMoreThanItKeepsTheLatestStay) {
  OperationMeter meter(2);
  const uint64_t more = OperationMeter::kSamplesKept + OperationMeter::kSamplesKept / 2;
  for (uint64_t i = 0; i < more; ++i) run(meter, key(i), i + 1, {10 * i, 0}, {10 * i + 5, 0});
  const auto samples = meter.take();
  ASSERT_EQ(samples.size(), OperationMeter::kSamplesKept);
  for (const auto& sample : samples) EXPECT_GT(sample.bytes, more - OperationMeter::kSamplesKept);
}

}  // namespace
}  // namespace braid
