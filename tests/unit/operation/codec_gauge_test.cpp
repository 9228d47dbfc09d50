// SPDX-License-Identifier: Apache-2.0
#include "operation/codec_gauge.h"

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "operation/codec_hop.h"

namespace braid {
namespace {

constexpr uint32_t kNodes = 4;
constexpr uint64_t kElements = 40'000;

double inner(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

// An average of four nodes, by hand: each node encodes its part for the owner of each quarter, who
// adds and encodes the sum; or each node encodes all for all others.
class CodecGaugeTest : public ::testing::Test {
 protected:
  void make(const std::string& spec) {
    coded_ = *make_coded_sum(*parse_codec_spec(spec), kNodes, kNodes);
    for (uint32_t node = 0; node < kNodes; ++node) {
      memories_.push_back(coded_.memory_floats == 0
                              ? nullptr
                              : *ErrorMemory::create(elements_ + 100, coded_.memory_floats));
    }
  }

  std::vector<float> gradient(uint32_t node, uint64_t step) const {
    std::mt19937 random(static_cast<uint32_t>(100 * step + node));
    std::normal_distribution<float> normal(0, 1);
    std::vector<float> values(elements_);
    for (uint64_t i = 0; i < elements_; ++i)
      values[i] = (std::sin(static_cast<float>(i)) + normal(random)) / kNodes;
    return values;
  }

  // The operation holds two tensors that lie elsewhere, in another order, in the set.
  std::unique_ptr<CodecHop> hop(uint32_t node, uint64_t step, Encoding final) {
    auto gauge = std::make_shared<CodecGauge>();
    gauge->set_final(final);
    gauges_.push_back(gauge);
    ElementRanges elements;
    elements.append(elements_ / 4 * 3 + 100, elements_ / 4);
    elements.append(7, elements_ / 4 * 3);
    return std::make_unique<CodecHop>(coded_, memories_[node], elements, node, step, gauge);
  }

  static std::vector<uint8_t> encode(CodecHop& hop, Encoding encoding, uint64_t first,
                                     std::span<const float> values) {
    std::vector<uint8_t> bytes(hop.encoded_bytes_max(encoding, values.size()));
    const Extent extent = {first * sizeof(float), values.size() * sizeof(float)};
    bytes.resize(hop.encode(encoding, extent, values, bytes));
    return bytes;
  }

  void run_two_hops(uint64_t step) {
    begin(step);
    std::vector<std::unique_ptr<CodecHop>> hops;
    for (uint32_t node = 0; node < kNodes; ++node) hops.push_back(hop(node, step, Encoding::Sum));
    const uint64_t length = elements_ / kNodes;
    for (uint32_t owner = 0; owner < kNodes; ++owner) {
      const uint64_t first = owner * length;
      std::vector<float> sum(length);
      for (uint32_t node = 0; node < kNodes; ++node) {
        const auto part = std::span<const float>(gradients_[node]).subspan(first, length);
        if (node == owner && !coded_.encodes_own_part) {
          for (uint64_t i = 0; i < length; ++i) sum[i] += part[i];
          continue;
        }
        const auto bytes = encode(*hops[node], Encoding::Part, first, part);
        ASSERT_TRUE(hops[owner]->decode_and_add(Encoding::Part, bytes, sum));
      }
      const auto bytes = encode(*hops[owner], Encoding::Sum, first, sum);
      const auto out = std::span<float>(decoded_).subspan(first, length);
      ASSERT_TRUE(hops[owner]->decode(Encoding::Sum, bytes, out));
    }
  }

  void run_direct(uint64_t step) {
    begin(step);
    for (uint32_t node = 0; node < kNodes; ++node) {
      const auto own = hop(node, step, Encoding::Part);
      const auto bytes = encode(*own, Encoding::Part, 0, gradients_[node]);
      ASSERT_TRUE(own->decode_and_add(Encoding::Part, bytes, decoded_));
    }
  }

  void begin(uint64_t step) {
    gauges_.clear();
    gradients_.clear();
    exact_.assign(elements_, 0);
    decoded_.assign(elements_, 0);
    for (uint32_t node = 0; node < kNodes; ++node) {
      gradients_.push_back(gradient(node, step));
      for (uint64_t i = 0; i < elements_; ++i) exact_[i] += gradients_.back()[i];
    }
  }

  CodecLoss loss() const {
    CodecLoss all;
    for (const auto& gauge : gauges_) all.add(gauge->loss());
    return all;
  }

  void expect_right_cosine(const std::string& what) {
    const double right =
        inner(exact_, decoded_) / std::sqrt(inner(exact_, exact_) * inner(decoded_, decoded_));
    const auto estimate = loss().cosine();
    ASSERT_TRUE(estimate.has_value()) << what;
    EXPECT_NEAR(*estimate, right, 4 * (1 - right * right) / 16 + 1e-6) << what;
  }

  uint64_t elements_ = kElements;
  CodedSum coded_;
  std::vector<std::shared_ptr<ErrorMemory>> memories_;
  std::vector<std::shared_ptr<CodecGauge>> gauges_;
  std::vector<std::vector<float>> gradients_;
  std::vector<float> exact_, decoded_;
};

class EveryCodecGaugeTest : public CodecGaugeTest,
                            public ::testing::WithParamInterface<const char*> {};

TEST_P(EveryCodecGaugeTest, TheEstimateIsNearTheExactCosine) {
  make(GetParam());
  for (uint64_t step = 0; step < 3; ++step) {
    run_two_hops(step);
    expect_right_cosine("by two hops");
  }
  run_direct(3);
  expect_right_cosine("direct");
}

INSTANTIATE_TEST_SUITE_P(Codecs, EveryCodecGaugeTest,
                         ::testing::Values("bf16", "fp16", "int8", "int4", "fp8-e4m3", "ef-sign",
                                           "1bit", "2bit:threshold=1", "2bit:threshold=0.001",
                                           "topk:ratio=0.01", "dgc:ratio=0.01", "qsgd", "terngrad",
                                           "natural", "sign-vote", "block-sparse"));

TEST_F(CodecGaugeTest, TheResidualIsThatOfTheMemories) {
  make("2bit:threshold=1");
  for (uint64_t step = 0; step < 3; ++step) run_two_hops(step);
  double memory = 0, given = 0;
  for (uint32_t node = 0; node < kNodes; ++node) {
    for (const float one : memories_[node]->elements(0, 0, kElements + 100))
      memory += double{one} * one;
    given += inner(gradients_[node], gradients_[node]);
  }
  EXPECT_NEAR(loss().residual().value(), std::sqrt(memory / given), 1e-9);
  EXPECT_EQ(loss().elements, kNodes * kElements);
}

TEST_F(CodecGaugeTest, OfALargeOperationSomeSlicesAreMeasured) {
  elements_ = 1 << 20;
  make("ef-sign");
  run_two_hops(0);
  expect_right_cosine("of one slice in four");
  const CodecLoss measured = loss();
  const auto all = static_cast<double>(kNodes * elements_);  // each is a part or a sum on each node
  EXPECT_GT(static_cast<double>(measured.elements), all / 16);
  EXPECT_LT(static_cast<double>(measured.elements), all / 2);
}

// In each step a threshold is sent of elements that grow by much more.
TEST_F(CodecGaugeTest, AThresholdThatIsMuchTooSmallSaturates) {
  make("2bit:threshold=0.0001");
  for (uint64_t step = 0; step < 3; ++step) run_two_hops(step);
  EXPECT_GT(loss().saturation(), 0.99);
  EXPECT_GT(loss().residual().value(), 1);
}

TEST_F(CodecGaugeTest, WhatKeepsNothingHasNoResidual) {
  make("int8");
  run_two_hops(0);
  EXPECT_EQ(loss().residual(), 0);
  EXPECT_EQ(loss().saturation(), 0);
}

TEST_F(CodecGaugeTest, WhereSumsAreEncodedOnTheWayThereIsNoCosine) {
  make("int8");
  begin(0);
  const auto one = hop(0, 0, Encoding::Plain);
  encode(*one, Encoding::Part, 0, gradients_[0]);
  EXPECT_FALSE(loss().has_sketches);
  EXPECT_EQ(loss().elements, kElements);
}

}  // namespace
}  // namespace braid
