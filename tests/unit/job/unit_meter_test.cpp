// SPDX-License-Identifier: Apache-2.0
#include "job/unit_meter.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kFirstNs = 5'000'000'000;

OperationKey key(uint64_t tensor) { return {1, tensor, 0}; }

TEST(UnitMeterTest, TimeBeginsWhenTheNextNodeIsReady) {
  UnitMeter meter;
  meter.on_start(key(1), 1000);
  meter.on_go(key(1), kFirstNs);
  meter.on_done(key(1), kFirstNs + 70);
  const auto samples = meter.take();
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].bytes, 1000u);
  EXPECT_EQ(samples[0].nanoseconds, 70u);
  EXPECT_DOUBLE_EQ(samples[0].concurrent, 1);
  EXPECT_TRUE(meter.take().empty());
}

TEST(UnitMeterTest, WhatEndsDuringItWasCarriedMeanwhile) {
  UnitMeter meter;
  meter.on_start(key(1), 1000);
  meter.on_start(key(2), 10);
  meter.on_go(key(1), kFirstNs);
  meter.on_go(key(2), kFirstNs + 20);
  meter.on_done(key(1), kFirstNs + 100);  // 80 of its 100 fall into the other's time
  meter.on_done(key(2), kFirstNs + 101);
  const auto samples = meter.take();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_DOUBLE_EQ(samples[0].concurrent, 1);
  EXPECT_DOUBLE_EQ(samples[1].concurrent, (800 + 10) / 10.0);
}

TEST(UnitMeterTest, WhatStillRunsCountsWhenItEnds) {
  UnitMeter meter;
  for (const uint64_t tensor : {1, 2, 3}) meter.on_start(key(tensor), 100);
  for (const uint64_t tensor : {1, 2, 3}) meter.on_go(key(tensor), kFirstNs);
  for (const uint64_t tensor : {1, 2, 3}) meter.on_done(key(tensor), kFirstNs + 10 * tensor);
  const auto samples = meter.take();
  ASSERT_EQ(samples.size(), 3u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_DOUBLE_EQ(samples[i].concurrent, static_cast<double>(i + 1));
}

TEST(UnitMeterTest, IdleTimeBetweenCountsForNobody) {
  UnitMeter meter;
  for (uint64_t i = 0; i < 3; ++i) {
    meter.on_start(key(i), 10);
    meter.on_go(key(i), kFirstNs + i * 1'000'000);
    meter.on_done(key(i), kFirstNs + i * 1'000'000 + 10);
  }
  for (const auto& sample : meter.take()) EXPECT_DOUBLE_EQ(sample.concurrent, 1);
}

TEST(UnitMeterTest, WhatWasNeverStartedOrHasNotGoneIsNotMeasured) {
  UnitMeter meter;
  meter.on_go(key(1), kFirstNs);
  meter.on_done(key(1), kFirstNs + 10);
  meter.on_start(key(2), 100);
  meter.on_done(key(2), kFirstNs + 10);
  meter.on_done(key(2), kFirstNs + 20);
  EXPECT_TRUE(meter.take().empty());
  meter.on_start(key(3), 100);  // and leaves nothing behind that others would share
  meter.on_go(key(3), kFirstNs + 30);
  meter.on_done(key(3), kFirstNs + 40);
  ASSERT_DOUBLE_EQ(meter.take().at(0).concurrent, 1);
}

TEST(UnitMeterTest, GoingTwiceIsGoingOnce) {
  UnitMeter meter;
  meter.on_start(key(1), 100);
  meter.on_go(key(1), kFirstNs);
  meter.on_go(key(1), kFirstNs + 50);
  meter.on_done(key(1), kFirstNs + 100);
  const auto samples = meter.take();
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].nanoseconds, 100u);
  EXPECT_DOUBLE_EQ(samples[0].concurrent, 1);
}

TEST(UnitMeterTest, NothingInNoTimeIsNoMeasurement) {
  UnitMeter meter;
  meter.on_start(key(1), 0);
  meter.on_go(key(1), kFirstNs);
  meter.on_done(key(1), kFirstNs + 10);
  meter.on_start(key(2), 10);
  meter.on_go(key(2), kFirstNs + 10);
  meter.on_done(key(2), kFirstNs + 10);
  EXPECT_TRUE(meter.take().empty());
}

TEST(UnitMeterTest, OfMoreThanItKeepsTheLatestStay) {
  UnitMeter meter;
  const uint64_t more = UnitMeter::kSamplesKept + UnitMeter::kSamplesKept / 2;
  for (uint64_t i = 0; i < more; ++i) {
    meter.on_start(key(i), i + 1);
    meter.on_go(key(i), kFirstNs + 10 * i);
    meter.on_done(key(i), kFirstNs + 10 * i + 5);
  }
  const auto samples = meter.take();
  ASSERT_EQ(samples.size(), UnitMeter::kSamplesKept);
  for (const auto& sample : samples) EXPECT_GT(sample.bytes, more - UnitMeter::kSamplesKept);
}

}  // namespace
}  // namespace braid
