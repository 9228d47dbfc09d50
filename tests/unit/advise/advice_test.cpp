// SPDX-License-Identifier: Apache-2.0
#include "advise/advice.h"

#include <gtest/gtest.h>

#include "tests/unit/advise/profiles.h"

namespace braid {
namespace {

const Planner& planner(std::string_view name = "wfbp") { return **find_planner(name); }

AdviceOptions two_nodes() {
  AdviceOptions options;
  options.cost = {.nodes = 2, .encode_threads = 1, .chunk_bytes = 1};
  return options;
}

// Two gradients of 100 bytes; a byte takes a second, so communication is what counts.
Workload two_tensors() { return {{{10, 100}, {20, 100}}, 5}; }

TEST(Advice, RowsSayWhatAStepTakes) {
  const LinearCostModel wire({3, 1});
  const std::vector<CodecProfile> codecs = {profile("half", 0.5, 0.25)};
  const Advice advice = advise(two_tensors(), wire, codecs, planner(), two_nodes());
  ASSERT_EQ(advice.rows.size(), 2u);
  const AdviceRow& plain = advice.rows[0];
  EXPECT_EQ(plain.codec, "none");
  EXPECT_DOUBLE_EQ(plain.step_seconds, 5 + 10 + 2 * 103);
  EXPECT_DOUBLE_EQ(plain.step_after_backward_seconds, 5 + 20 + 2 * 103);
  EXPECT_DOUBLE_EQ(plain.communication_seconds, 206);
  EXPECT_DOUBLE_EQ(plain.exposed_seconds, 196);
  EXPECT_EQ(plain.encode_seconds, 0);
  EXPECT_DOUBLE_EQ(plain.wire_bytes, 200);
  const AdviceRow& half = advice.rows[1];
  EXPECT_DOUBLE_EQ(half.step_seconds, 5 + 10 + 2 * (3 + 50 + 0.25));
  EXPECT_DOUBLE_EQ(half.encode_seconds, 50);
  EXPECT_DOUBLE_EQ(half.wire_bytes, 100);
  EXPECT_EQ(advice.recommended, 1u);
}

TEST(Advice, GroupsAreThoseOfThePlainPlan) {
  const LinearCostModel wire({3, 1});
  const std::vector<CodecProfile> codecs = {profile("half", 0.5, 0.25),
                                            profile("tiny", 0.49, 0.25)};
  const Workload workload = {{{10, 100}, {100, 0}, {100, 100}}, 5};
  const Advice advice = advise(workload, wire, codecs, planner(), two_nodes());
  ASSERT_EQ(advice.groups.size(), 3u);
  EXPECT_EQ(advice.recommended, 1u);
  EXPECT_EQ(advice.groups[0].bytes, 100u);
  EXPECT_DOUBLE_EQ(advice.groups[0].exposed_seconds, 13) << "it ends at 113";
  EXPECT_EQ(advice.groups[0].codec, 1u);
  EXPECT_EQ(advice.groups[0].seconds, (std::vector<double>{103, 53.25, 52.25}));
  EXPECT_EQ(advice.groups[1].codec, 0u) << "of nothing there is nothing to save";
  EXPECT_EQ(advice.groups[1].exposed_seconds, 3);
  EXPECT_EQ(advice.groups[2].exposed_seconds, 103);
  EXPECT_DOUBLE_EQ(advice.step_by_group_seconds, 5 + 100 + 3 + 53.25);
}

TEST(Advice, GroupsTakeNothingThatLosesMoreThanTheStepsCodec) {
  const LinearCostModel wire({3, 1});
  const std::vector<CodecProfile> codecs = {profile("half", 0.5, 0), profile("tiny", 0.1, 0)};
  const Workload workload = {{{100, 100}, {1000, 10}}, 5};
  const Advice advice = advise(workload, wire, codecs, planner(), two_nodes());
  ASSERT_EQ(advice.recommended, 0u) << "backward hides it, but for some seconds";
  for (const AdviceGroup& group : advice.groups) EXPECT_EQ(group.codec, 0u);
}

TEST(Advice, WhereComputingIsAllNoCodecIsRecommended) {
  const LinearCostModel wire({0.001, 1e-6});
  const std::vector<CodecProfile> codecs = {profile("bf16", 0.5, 0), profile("1bit", 0.03, 0)};
  const Workload workload = {{{10, 100}, {20, 100}}, 5};
  EXPECT_EQ(advise(workload, wire, codecs, planner("exact"), two_nodes()).recommended, 0u);
}

TEST(Advice, NothingToSendTakesForwardAndBackward) {
  const LinearCostModel wire({3, 1});
  const Advice advice = advise({{}, 5}, wire, {}, planner(), two_nodes());
  EXPECT_EQ(advice.rows.front().step_seconds, 5);
  EXPECT_TRUE(advice.groups.empty());
}

TEST(ChooseCodec, PrefersWhatLosesLess) {
  const std::vector<CodecProfile> codecs = {profile("1bit", 0.03, 0), profile("bf16", 0.5, 0)};
  const auto choose = [&codecs](double none, double one_bit, double half) {
    const std::vector steps = {none, one_bit, half};
    return choose_codec(steps, steps, codecs, 0.04);
  };
  EXPECT_EQ(choose(100, 97, 97), 0u) << "less than the margin";
  EXPECT_EQ(choose(100, 49, 50), 2u) << "1bit is not that much better than bf16";
  EXPECT_EQ(choose(100, 48, 50), 1u) << "it saves 4 % of bf16's step";
  EXPECT_EQ(choose(100, 96, 98), 2u) << "none does not do, and bf16 is no 4 % longer than 1bit";
  EXPECT_EQ(choose(100, 100, 110), 0u);
  const std::vector<double> close = {100, 100, 99};
  EXPECT_EQ(choose_codec(close, close, codecs, 0), 2u);
}

TEST(ChooseCodec, LeavesOutWhatOnlyJustFits) {
  const std::vector<CodecProfile> codecs = {profile("bf16", 0.5, 0), profile("int8", 0.25, 0)};
  const std::vector<double> steps = {100, 60, 60};
  EXPECT_EQ(choose_codec(steps, std::vector<double>{110, 61, 60}, codecs, 0.03), 1u);
  EXPECT_EQ(choose_codec(steps, std::vector<double>{110, 70, 60}, codecs, 0.03), 2u);
  EXPECT_EQ(
      choose_codec(std::vector<double>{61, 60, 60}, std::vector<double>{90, 60, 60}, codecs, 0.03),
      0u)
      << "a codec must pay as predicted";
}

TEST(Advice, CautiousStepsAreOfSlowerCommunication) {
  const LinearCostModel wire({1, 1});
  const Workload workload = {{{10, 100}}, 5};
  const std::vector<CodecProfile> codecs = {profile("half", 0.5, 0.001)};
  const Advice advice = braid::advise(workload, wire, codecs, planner(), two_nodes());
  EXPECT_DOUBLE_EQ(advice.rows[0].step_seconds, 5 + 10 + 1 + 100);
  EXPECT_DOUBLE_EQ(advice.rows[0].cautious_step_seconds, 5 + 10 + 1 + 125);
  EXPECT_GT(advice.rows[1].cautious_step_seconds, advice.rows[1].step_seconds);
}

TEST(ChooseCodec, LosslessOnesComeFirst) {
  std::vector<CodecProfile> codecs = {profile("bf16", 0.5, 0), profile("block-sparse", 0.4, 0)};
  codecs[1].is_lossless = true;
  const std::vector<double> steps = {100, 90, 90};
  EXPECT_EQ(choose_codec(steps, steps, codecs, 0.03), 2u);
}

}  // namespace
}  // namespace braid
