// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kNow = 1'700'000'000;

GpuFacts gpu(uint32_t index = 0) {
  GpuFacts facts;
  facts.index = index;
  facts.name = "fake";
  facts.uuid = "GPU-" + std::to_string(index);
  facts.clock_mhz = 1980;
  facts.clock_max_mhz = 1980;
  facts.temperature_celsius = 60;
  facts.ecc_uncorrected = 0;
  return facts;
}

GpuFacts slowed(std::string_view reason) {
  GpuFacts facts = gpu();
  facts.clock_mhz = 1140;
  facts.reasons.push_back({std::string(reason)});
  return facts;
}

class GpuHistoryTest : public ::testing::Test {
 protected:
  std::vector<GpuFacts> read(std::vector<GpuFacts> gpus, uint64_t now,
                             std::vector<GpuReader::Xid> xids = {}) {
    news_.clear();
    return history_.complete({std::move(gpus), std::move(xids)}, now, news_);
  }

  GpuHistory history_;
  std::vector<std::string> news_;
};

TEST_F(GpuHistoryTest, SaysSinceWhenAClockIsLow) {
  EXPECT_EQ(read({slowed(kSlowedByHeat)}, kNow)[0].reasons[0].since, kNow);
  EXPECT_THAT(news_, ElementsAre("GPU 0 (GPU-0) is slowed down by heat: 1140 of 1980 MHz, 60 °C"));
  EXPECT_EQ(read({slowed(kSlowedByHeat)}, kNow + 5)[0].reasons[0].since, kNow);
  EXPECT_THAT(news_, IsEmpty());
}

TEST_F(GpuHistoryTest, ABreakOfLessThanAMinuteIsNone) {
  read({slowed(kSlowedByHeat)}, kNow);
  EXPECT_THAT(read({gpu()}, kNow + 30)[0].reasons, IsEmpty());
  EXPECT_EQ(read({slowed(kSlowedByHeat)}, kNow + 59)[0].reasons[0].since, kNow);
  EXPECT_THAT(news_, IsEmpty());
  EXPECT_EQ(read({slowed(kSlowedByHeat)}, kNow + 119)[0].reasons[0].since, kNow + 119);
}

TEST_F(GpuHistoryTest, APowerCapIsUsualAndNoNews) {
  EXPECT_EQ(read({slowed(kSlowedByPowerCap)}, kNow)[0].reasons[0].since, kNow);
  EXPECT_THAT(news_, IsEmpty());
}

TEST_F(GpuHistoryTest, CountsXidsAndKeepsTheLast) {
  std::vector<GpuFacts> facts = read({gpu(0), gpu(1)}, kNow, {{1, 31}, {1, 79}});
  EXPECT_EQ(facts[0].xid_errors, 0u);
  EXPECT_EQ(facts[1].xid_errors, 2u);
  EXPECT_EQ(facts[1].last_xid, 79u);
  EXPECT_THAT(news_, ElementsAre(HasSubstr("Xid 31"),
                                 "GPU 1 (GPU-1) reports Xid 79: the GPU has fallen off the bus"));
  facts = read({gpu(0), gpu(1)}, kNow + 5, {{1, 999}});
  EXPECT_EQ(facts[1].xid_errors, 3u);
  EXPECT_EQ(facts[1].last_xid_at, kNow + 5);
  EXPECT_THAT(news_, ElementsAre("GPU 1 (GPU-1) reports Xid 999"));
}

TEST_F(GpuHistoryTest, OldMemoryErrorsAreNoNewsButNewOnesAre) {
  GpuFacts one = gpu();
  one.ecc_uncorrected = 2;
  EXPECT_EQ(read({one}, kNow)[0].ecc_uncorrected_at, 0u);
  one.ecc_uncorrected = 3;
  EXPECT_EQ(read({one}, kNow + 5)[0].ecc_uncorrected_at, kNow + 5);
  EXPECT_THAT(news_, ElementsAre("GPU 0 (GPU-0) has 3 uncorrectable memory errors, 1 of them new"));
  EXPECT_EQ(read({one}, kNow + 10)[0].ecc_uncorrected_at, kNow + 5);
  EXPECT_THAT(news_, IsEmpty());
}

TEST_F(GpuHistoryTest, AGpuThatDoesNotAnswerIsSaidOnce) {
  read({gpu()}, kNow);
  GpuFacts lost = gpu();
  lost.error = "GPU is lost";
  read({lost}, kNow + 5);
  EXPECT_THAT(news_, ElementsAre("GPU 0 (GPU-0) does not answer: GPU is lost"));
  read({lost}, kNow + 10);
  EXPECT_THAT(news_, IsEmpty());
  read({gpu()}, kNow + 15);
  EXPECT_THAT(news_, ElementsAre("GPU 0 (GPU-0) answers again"));
}

TEST_F(GpuHistoryTest, WhoHasComputedOnALostGpuIsStillKnown) {
  GpuFacts used = gpu();
  used.processes = {{4711}};
  read({used}, kNow);
  GpuFacts lost = gpu();
  lost.error = "GPU is lost";
  EXPECT_EQ(read({lost}, kNow + 5)[0].processes.at(0).pid, 4711);
  EXPECT_EQ(read({}, kNow + 10)[0].processes.at(0).pid, 4711);
  EXPECT_THAT(read({gpu()}, kNow + 15)[0].processes, IsEmpty());
}

TEST_F(GpuHistoryTest, ATimeOfAnotherDayHasItsDate) {
  const GpuFacts facts = read({gpu()}, kNow)[0];  // 2023-11-14 22:13:20
  EXPECT_EQ(facts.read_at, kNow);
  EXPECT_EQ(facts.format_time_of(kNow - 600), "22:03 UTC");
  EXPECT_EQ(facts.format_time_of(kNow - 86'400), "2023-11-13 22:13 UTC");
}

TEST_F(GpuHistoryTest, OneThatIsLostFromTheBeginningIsSaid) {
  GpuFacts lost = gpu();
  lost.error = "GPU is lost";
  read({lost}, kNow);
  EXPECT_THAT(news_, ElementsAre(HasSubstr("does not answer")));
}

TEST_F(GpuHistoryTest, AGpuThatTellsNoUuidAnyMoreIsTheOneOfItsPlace) {
  read({gpu(0), gpu(1)}, kNow);
  GpuFacts nameless;
  nameless.index = 1;
  nameless.error = "GPU is lost";
  const std::vector<GpuFacts> facts = read({gpu(0), nameless}, kNow + 5);
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(facts[1].uuid, "GPU-1");
  EXPECT_EQ(facts[1].name, "fake");
}

TEST_F(GpuHistoryTest, AGpuThatTheDriverListsNoMoreStays) {
  read({gpu(0), gpu(1)}, kNow, {{1, 79}});
  std::vector<GpuFacts> facts = read({gpu(0)}, kNow + 5);
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(facts[1].uuid, "GPU-1");
  EXPECT_EQ(facts[1].error, "the driver lists it no more");
  EXPECT_EQ(facts[1].xid_errors, 1u);
  EXPECT_EQ(news_.size(), 1u);
  read({gpu(0)}, kNow + 10);
  EXPECT_THAT(news_, IsEmpty());
  facts = read({gpu(0), gpu(1)}, kNow + 15);
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(facts[1].error, "");
}

TEST_F(GpuHistoryTest, AGpuThatIsNamedLaterIsNotTwo) {
  GpuFacts nameless;
  nameless.error = "GPU is lost";
  read({nameless}, kNow);
  EXPECT_EQ(read({gpu(0)}, kNow + 5).size(), 1u);
}

}  // namespace
}  // namespace braid
