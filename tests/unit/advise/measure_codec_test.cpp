// SPDX-License-Identifier: Apache-2.0
#include "advise/measure_codec.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(PassTimer, TheFastestOfThePassesButTheFirstCounts) {
  double now = 0;
  const std::vector<double> takes = {1, 9, 4, 7};
  size_t passes = 0;
  const PassTimer timer{.clock = [&now] { return now; }, .repeats = 3};
  EXPECT_EQ(timer.fastest_seconds([&] { now += takes[passes++]; }), 4);
  EXPECT_EQ(passes, 4u);
}

TEST(PassTimer, NoPassBeginsOnceTheBudgetIsSpent) {
  double now = 0;
  int passes = 0;
  const PassTimer timer{.clock = [&now] { return now; }, .repeats = 100, .budget_seconds = 5};
  timer.fastest_seconds([&] { now += 2, ++passes; });
  EXPECT_EQ(passes, 4) << "one that does not count, and three until 5 seconds are spent";
}

TEST(MeasureCodec, SaysSizesAndTimes) {
  const std::vector<float> gradient = make_gradient(1024);
  std::vector<float> sums(gradient.size());
  double now = 0;
  const PassTimer timer{.clock = [&now] { return now += 1; }};
  const auto times = measure_codec(parse_codec_spec("bf16").value(), gradient, sums, timer).value();
  EXPECT_EQ(times.codec, "bf16");
  EXPECT_EQ(times.bytes, 4096u);
  EXPECT_EQ(times.encoded_bytes, 2048u);
  EXPECT_EQ(times.encode, 1);
  EXPECT_EQ(times.decode_and_add, 1);
  const auto dgc = measure_codec(parse_codec_spec("dgc").value(), gradient, sums, timer).value();
  EXPECT_EQ(dgc.encode, 0) << "it has none without memory";
  EXPECT_EQ(dgc.encode_with_memory, 1);
}

TEST(MeasureCodec, SumsAreMeasuredWhereTheyAreEncodedByThemselves) {
  const std::vector<float> gradient = make_gradient(1024);
  std::vector<float> sums(gradient.size());
  double now = 0;
  const PassTimer timer{.clock = [&now] { return now += 1; }};
  const auto measured = [&](std::string_view codec, uint32_t nodes) {
    const auto times = measure_codec(parse_codec_spec(codec).value(), gradient, sums, timer, nodes);
    EXPECT_TRUE(times) << times.status().message();
    return *times;
  };
  EXPECT_EQ(measured("topk:ratio=0.1", 4).encode_sum, 1);
  EXPECT_EQ(measured("topk:ratio=0.1", 60'000).decode_sum, 1);
  EXPECT_EQ(measured("2bit", 4).decode_sum, 1);
  EXPECT_EQ(measured("2bit", 0).decode_sum, 0);
  EXPECT_EQ(measured("int8", 4).encode_sum, 0) << "as parts are";
}

}  // namespace
}  // namespace braid
