// SPDX-License-Identifier: Apache-2.0
#include "braidctl/advice_report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "braidctl/ctl_advise.h"

namespace braid {
namespace {

CodecProfile advised(std::string name, double share, double seconds_per_byte) {
  CodecProfile codec;
  codec.name = std::move(name);
  codec.is_lossless = false;
  codec.part_share = share;
  codec.sum_share = share;
  codec.coding = {{1000, 1000 * seconds_per_byte}};
  return codec;
}

// A byte takes a nanosecond: 8 Gbit/s between two nodes.
RenderedAdvice advised_report(std::vector<CodecProfile> codecs, double backward_seconds) {
  RenderedAdvice report;
  report.trace.model = "m";
  report.trace.tensors = {{"first", 25'000'000, DataType::Float32, backward_seconds}};
  report.options.cost.nodes = 2;
  report.planner = "wfbp";
  report.rates = "of r";
  const LinearCostModel wire({1e-4, 1e-9});
  const Planner& planner = **find_planner("wfbp");
  const Workload workload = workload_of(report.trace);
  report.advice = advise(workload, wire, codecs, planner, report.options);
  report.sweep = sweep_bandwidths(workload, wire, codecs, planner, report.options);
  report.measured_bandwidth = wire_bandwidth(wire, 2);
  return report;
}

const std::vector<CodecProfile> kCodecs = {advised("bf16", 0.5, 0), advised("int8", 0.25, 0),
                                           advised("slow", 0.1, 2e-9)};

bool has_sentence(const RenderedAdvice& report, const std::string& text) {
  for (const std::string& sentence : advice_sentences(report)) {
    if (sentence.find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(AdviceReport, SentencesSayWhatPays) {
  const RenderedAdvice report = advised_report(kCodecs, 0.01);
  EXPECT_EQ(advice_reason(report),
            "int8 would save 75.0 ms of 110 ms (predicted); bf16 saves 50.0 ms.");
  EXPECT_TRUE(has_sentence(report, "slow loses 100 ms: encoding and decoding take 200 ms."));
  EXPECT_TRUE(has_sentence(report, "Some codec pays even at 100 Gbit/s."));
  EXPECT_TRUE(has_sentence(report, "int8 for 1 of 1"));
}

TEST(AdviceReport, SaysThatFewerBytesMayMeanMoreSteps) {
  std::vector<CodecProfile> codecs = kCodecs;
  codecs.push_back(advised("1bit", 0.03, 0));
  codecs.back().slows_training = true;
  EXPECT_TRUE(has_sentence(advised_report(codecs, 0.01),
                           "With 1bit training needs more steps; int8, with which it hardly ever "
                           "does, saves 75.0 ms."));
  EXPECT_TRUE(
      has_sentence(advised_report({codecs.back()}, 0.01), "With 1bit training needs more steps."));
  EXPECT_FALSE(has_sentence(advised_report(kCodecs, 0.01), "more steps"));
}

TEST(AdviceReport, WarnsWhereTheStepWasMeasuredToBeAnother) {
  RenderedAdvice report = advised_report(kCodecs, 0.01);
  EXPECT_FALSE(misprediction_warning(report));
  report.measured_seconds = 0.112;
  EXPECT_FALSE(misprediction_warning(report));
  EXPECT_NE(
      advice_table(report).find(
          "without a codec a step takes 110.100 ms by prediction, 112.000 ms as measured\n\n"),
      std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(advice_json(report))["measured_step_seconds"], 0.112);
  report.measured_seconds = 0.3;
  EXPECT_NE(
      misprediction_warning(report)->find("a step takes 300.000 ms, but 110.100 ms by prediction"),
      std::string::npos);
}

TEST(AdviceReport, SentencesSayWhyNothingPays) {
  const RenderedAdvice report = advised_report(kCodecs, 100);
  EXPECT_EQ(report.advice.recommended, 0u);
  EXPECT_EQ(advice_reason(report),
            "No codec pays: int8, the fastest, would save 0.08 s of 100 s (predicted), not 3 %.");
  EXPECT_TRUE(has_sentence(report, "Nothing pays from 1 Gbit/s on."));
  EXPECT_EQ(advice_reason(advised_report({}, 100)),
            "No codec was looked at; the step takes 100 s.");
}

TEST(AdviceReport, TheJsonHasItsFields) {
  const auto json = nlohmann::json::parse(advice_json(advised_report(kCodecs, 0.01)));
  EXPECT_EQ(json["recommended"], "int8");
  EXPECT_TRUE(json["reason"].is_string());
  ASSERT_EQ(json["rows"].size(), 4u);
  for (const auto& row : json["rows"]) {
    EXPECT_TRUE(row["codec"].is_string());
    for (const char* field : {"step_seconds", "communication_seconds", "encode_seconds",
                              "exposed_seconds", "wire_bytes", "step_after_backward_seconds"}) {
      EXPECT_TRUE(row[field].is_number()) << field;
    }
  }
  EXPECT_EQ(json["rows"][0]["codec"], "none");
  EXPECT_EQ(json["rows"][0]["pays_up_to_bits_per_second"], 0);
  EXPECT_TRUE(json["rows"][1]["pays_up_to_bits_per_second"].is_null()) << "it always pays";
  ASSERT_EQ(json["groups"].size(), 1u);
  EXPECT_EQ(json["groups"][0]["tensors"], nlohmann::json({"first"}));
  EXPECT_EQ(json["groups"][0]["recommended"], "int8");
  EXPECT_EQ(json["groups"][0]["communication_seconds"].size(), 4u);
  EXPECT_NEAR(json["wire_bits_per_second"].get<double>(), 8e9, 1);
  EXPECT_EQ(json["model"], "m");
  const auto& steps = json["sweep"]["step_seconds"];
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps["int8"].size(), json["sweep"]["bits_per_second"].size());
}

TEST(JoinCodecWords, ParametersStayWithTheirCodec) {
  const auto words = [](std::vector<std::string> list) { return join_codec_words(list); };
  EXPECT_EQ(
      words({"bf16:rounding=stochastic", "seed=3", "int8", "topk:ratio=0.01"}),
      (std::vector<std::string>{"bf16:rounding=stochastic,seed=3", "int8", "topk:ratio=0.01"}));
  EXPECT_EQ(words({"seed=3"}), std::vector<std::string>{"seed=3"}) << "no codec, and so an error";
  EXPECT_TRUE(words({}).empty());
}

}  // namespace
}  // namespace braid
