// SPDX-License-Identifier: Apache-2.0
#include "planning/carry_meter.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kBytes = CarryMeter::kBytesMin;

TEST(CarryMeter, IsTheMedianOfItsWindows) {
  CarryMeter meter;
  EXPECT_EQ(meter.seconds_per_byte(), 0);
  CarriedWork work{5'000'000'000, 7 * kBytes};  // before the job
  meter.note(work);
  EXPECT_EQ(meter.seconds_per_byte(), 0);
  for (const uint64_t ns_per_byte : {2, 100, 3}) {
    work.bytes += kBytes;
    work.processor_ns += ns_per_byte * kBytes;
    meter.note(work);
  }
  EXPECT_DOUBLE_EQ(meter.seconds_per_byte(), 3e-9);
}

TEST(CarryMeter, ForgetsOldWindowsAndThoseOfLittle) {
  CarryMeter meter;
  CarriedWork work;
  meter.note(work);
  work = {1'000'000'000, 10};
  meter.note(work);
  EXPECT_EQ(meter.seconds_per_byte(), 0) << "ten bytes";
  for (size_t i = 0; i < 2 * CarryMeter::kWindowsKept; ++i) {
    work.bytes += kBytes;
    work.processor_ns += (i < CarryMeter::kWindowsKept ? 9 : 4) * kBytes;
    meter.note(work);
  }
  EXPECT_DOUBLE_EQ(meter.seconds_per_byte(), 4e-9);
}

}  // namespace
}  // namespace braid
