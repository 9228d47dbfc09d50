// SPDX-License-Identifier: Apache-2.0
// What a node measures of its codecs, and how they end.
#include <nlohmann/json.hpp>

#include "base/errors_testing.h"
#include "base/hash.h"
#include "planner/live_plan.h"
#include "planning/plan_book_testing.h"

namespace braid {
namespace {

using testing::hash_of;
using testing::is_error;
using testing::planned_tensors;

class PlanBookGuardTest : public testing::PlanBookTest {
 protected:
  static constexpr uint32_t kEvery = 4;

  // 't0', 't1' and 't2' have the codec, 't3' has none.
  void make_coded(const std::string& codec = "2bit:threshold=0.25", uint32_t every = kEvery) {
    make({0}, noting_actions(), every);
    auto tensors = planned_tensors(4);
    for (uint32_t i = 0; i < 3; ++i) tensors[i].codec = *parse_codec_spec(codec);
    add(0, kSet, tensors);
  }
  PlanProposal plain_proposal(uint32_t number, uint64_t from_step,
                              const std::vector<uint32_t>& tensors) {
    PlanProposal result;
    result.job_key = kJob;
    result.set = kSet;
    result.number = number;
    result.from_step = from_step;
    PlainGroup& group = result.plain.emplace_back();
    for (const uint32_t i : tensors) group.tensors.push_back(hash_of(i));
    group.limit = GuardLimit::Saturation;
    group.measured = 0.99;
    group.allowed = 0.5;
    return result;
  }
  void end_codec(uint32_t number, uint64_t from_step, const std::vector<uint32_t>& tensors) {
    ASSERT_TRUE(book_->on_proposal(plain_proposal(number, from_step, tensors)).is_ok());
    ASSERT_TRUE(decide(number, true).is_ok());
  }
  // The submissions of a step.
  std::vector<testing::Passed> step(uint64_t number) {
    passed.clear();
    submit_step(number, 4);
    return passed;
  }
};

TEST_F(PlanBookGuardTest, EachSoManyThStepOfWhatHasACodecIsSampled) {
  make_coded();
  for (uint64_t number = 0; number < 9; ++number) {
    for (const auto& one : step(number))
      EXPECT_EQ(one.form().is_sampled_in(number), number % kEvery == kEvery - 1) << number;
  }
}

TEST_F(PlanBookGuardTest, NothingIsSampledWhereThatIsOff) {
  make_coded("int8", 0);
  for (uint64_t number = 0; number < 9; ++number) {
    for (const auto& one : step(number)) EXPECT_FALSE(one.form().is_sampled_in(number));
  }
}

TEST_F(PlanBookGuardTest, ASampleGoesToTheCoordinatorWithItsGroup) {
  make_coded();
  step(3);
  CodecLoss loss;
  loss.elements = 300;
  loss.saturated = 30;
  ASSERT_TRUE(book_->on_loss({kJob, hash_of(0), 3}, loss).is_ok());
  const auto samples = sent_as<proto::CodecSample>();
  ASSERT_EQ(samples.size(), 1u);
  const auto sample = parse_codec_sample(*samples[0]);
  ASSERT_TRUE(sample.is_ok());
  EXPECT_EQ(sample->job_key, kJob);
  EXPECT_EQ(sample->set, kSet);
  EXPECT_EQ(sample->step, 3u);
  EXPECT_EQ(sample->tensors, (std::vector{hash_of(0), hash_of(1), hash_of(2)}));
  EXPECT_EQ(to_string(sample->codec), "2bit:threshold=0.25");
  EXPECT_EQ(sample->loss.saturated, 30u);
}

TEST_F(PlanBookGuardTest, FromTheStepOnSubmissionsHaveNoCodec) {
  make_coded();
  ASSERT_TRUE(book_->on_proposal(plain_proposal(1, 5, {0, 1, 2})).is_ok());
  EXPECT_EQ(accepted(), std::vector<bool>{true});
  EXPECT_TRUE(step(5).empty()) << "kept back until the verdict";
  ASSERT_TRUE(decide(1, true).is_ok());
  ASSERT_EQ(passed.size(), 4u);
  for (const testing::Passed& one : passed) {
    EXPECT_EQ(one.signature().codec, CodecSpec());
    EXPECT_EQ(one.coded(), nullptr);
  }
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(passed[i].signature().count, 300u) << "the group stays";
    EXPECT_EQ(passed[i].planned.member, i);
  }
  for (const auto& one : step(4))
    EXPECT_EQ(one.coded() != nullptr, one.signature().count == 300) << "a step before";
}

TEST_F(PlanBookGuardTest, IsRefusedWhenItComesTooLate) {
  make_coded();
  step(7);
  ASSERT_TRUE(book_->on_proposal(plain_proposal(1, 7, {0})).is_ok());
  ASSERT_EQ(accepted(), std::vector<bool>{false});
  EXPECT_EQ(sent_as<proto::PlanAnswer>()[0]->step(), 7u);
}

TEST_F(PlanBookGuardTest, WithoutAVerdictThatItHoldsNothingChanges) {
  make_coded();
  ASSERT_TRUE(book_->on_proposal(plain_proposal(1, 5, {0, 1, 2})).is_ok());
  ASSERT_TRUE(decide(1, false).is_ok());
  EXPECT_NE(step(5)[0].coded(), nullptr);
}

TEST_F(PlanBookGuardTest, TensorsThatHaveNoCodecEndTheJob) {
  make_coded();
  for (const uint32_t tensor : {3u, 99u}) {
    EXPECT_TRUE(is_error(book_->on_proposal(plain_proposal(1, 5, {0, tensor})),
                         StatusCode::Protocol, {"codec of"}));
  }
}

TEST_F(PlanBookGuardTest, ReportsSayWhichCodecHolds) {
  make_coded();
  end_codec(1, 1, {0, 1});
  for (uint64_t number = 0; sent_as<proto::PlanReport>().empty() && number < 100; ++number)
    step(number);
  const auto reports = sent_as<proto::PlanReport>();
  ASSERT_EQ(reports.size(), 1u);
  const auto report = parse_plan_report(*reports[0]);
  ASSERT_TRUE(report.is_ok());
  EXPECT_EQ(report->codecs, (std::vector<uint64_t>{0, 0, fnv1a64("2bit:threshold=0.25"), 0}));
}

GuardReading reading_of_first_group() {
  GuardReading reading;
  reading.set = 5;
  reading.step = 63;
  reading.tensors = {hash_of(0), hash_of(1), hash_of(2)};
  reading.codec = *parse_codec_spec("2bit:threshold=0.25");
  reading.residual = 2.5;
  reading.saturation = 0.125;
  return reading;
}

TEST_F(PlanBookGuardTest, ToolsAreToldTheReadingsAndWhatIsPlain) {
  make_coded();
  const GuardNews news = {kEvery, "node-a", std::vector{reading_of_first_group()}};
  const auto set_of = [&](const GuardNews& one) {
    auto jobs = parse_live_plans("[" + book_->to_json({1, 1}, one) + "]");
    EXPECT_TRUE(jobs.is_ok()) << jobs.status().message();
    return jobs->at(0).sets.at(0);
  };
  LiveSet set = set_of(news);
  ASSERT_EQ(set.codecs.size(), 2u);
  EXPECT_EQ(set.codecs[0].name, "2bit:threshold=0.25");
  EXPECT_TRUE(set.codecs[0].is_read);
  EXPECT_EQ(set.codecs[0].residual, 2.5);
  EXPECT_EQ(set.codecs[0].cosine, std::nullopt);
  EXPECT_EQ(set.codecs[0].saturation, 0.125);
  EXPECT_EQ(set.codecs[1].name, "none");
  EXPECT_FALSE(set.codecs[1].is_read);
  EXPECT_EQ(set.sampled_every_steps, kEvery);
  EXPECT_EQ(set.coordinator, "node-a");
  EXPECT_TRUE(set.is_coordinator);
  EXPECT_TRUE(set.plain.empty());

  end_codec(1, 9, {0, 1, 2});
  set = set_of({kEvery, "node-a", std::nullopt});
  EXPECT_FALSE(set.is_coordinator);
  EXPECT_EQ(set.codecs.at(0).name, "none");
  ASSERT_EQ(set.plain.size(), 1u);
  EXPECT_EQ(set.plain[0].tensors, (std::vector<std::string>{"t0", "t1", "t2"}));
  EXPECT_EQ(set.plain[0].codec, "2bit:threshold=0.25");
  EXPECT_EQ(set.plain[0].from_step, 9u);
  EXPECT_EQ(set.plain[0].limit, "saturation");
  EXPECT_EQ(set.plain[0].measured, 0.99);
  EXPECT_EQ(set.plain[0].allowed, 0.5);
}

}  // namespace
}  // namespace braid
