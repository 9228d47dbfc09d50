// SPDX-License-Identifier: Apache-2.0
#include "bench/pattern.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

namespace braid::bench {
namespace {

constexpr uint32_t kRanks = 4;
constexpr uint64_t kCount = 3 * Pattern::kPeriod + 17;

std::vector<float> input_of(uint32_t rank, uint64_t iteration) {
  std::vector<float> values(kCount);
  Pattern::create(DataType::Float32, rank, kRanks).value().fill(iteration, values.data(), kCount);
  return values;
}

std::vector<float> sum_of(uint64_t iteration) {
  std::vector<float> sum(kCount);
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const auto input = input_of(rank, iteration);
    for (uint64_t i = 0; i < kCount; ++i) sum[i] += input[i];
  }
  return sum;
}

Pattern pattern() { return Pattern::create(DataType::Float32, 0, kRanks).value(); }

TEST(Pattern, TheSumOfAllInputsIsRight) {
  for (const uint64_t iteration : {0, 1, 2, 1021, 100'000}) {
    EXPECT_FALSE(pattern().verify(iteration, sum_of(iteration).data(), kCount).has_value());
  }
}

TEST(Pattern, OneWrongElementIsNamed) {
  for (const uint64_t index : {uint64_t{0}, Pattern::kPeriod, kCount - 1}) {
    auto sum = sum_of(0);
    const float expected = sum[index];
    sum[index] += 1;
    const auto mismatch = pattern().verify(0, sum.data(), kCount);
    ASSERT_TRUE(mismatch.has_value());
    EXPECT_EQ(mismatch->index, index);
    EXPECT_EQ(mismatch->expected, fmt::format("{}", expected));
    EXPECT_EQ(mismatch->actual, fmt::format("{}", expected + 1));
    EXPECT_EQ(mismatch->wrong, 1u);
  }
}

TEST(Pattern, TheResultOfAnotherIterationIsWrong) {
  for (uint64_t iteration = 1; iteration < 10; ++iteration) {
    EXPECT_TRUE(pattern().verify(iteration, sum_of(iteration - 1).data(), kCount).has_value());
  }
}

TEST(Pattern, AMissingRankOrADoubledOneIsWrong) {
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const auto input = input_of(rank, 0);
    auto missing = sum_of(0);
    auto doubled = sum_of(0);
    for (uint64_t i = 0; i < kCount; ++i) {
      missing[i] -= input[i];
      doubled[i] += input[i];
    }
    EXPECT_TRUE(pattern().verify(0, missing.data(), kCount).has_value());
    EXPECT_TRUE(pattern().verify(0, doubled.data(), kCount).has_value());
  }
}

TEST(Pattern, RotatedDataIsWrong) {
  const auto sum = sum_of(0);
  for (const uint64_t shift : {uint64_t{1}, uint64_t{16}, uint64_t{1024}}) {
    std::vector<float> rotated(sum.begin() + static_cast<ptrdiff_t>(shift), sum.end());
    EXPECT_TRUE(pattern().verify(0, rotated.data(), rotated.size()).has_value()) << shift;
  }
}

TEST(Pattern, NothingIsRight) { EXPECT_FALSE(pattern().verify(0, nullptr, 0).has_value()); }

// Decodes the 16-bit floats by their definitions, independently of how Pattern makes them.
double decode_float16(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  return std::ldexp(1.0 + (bits & 1023) / 1024.0, exponent - 15);
}
double decode_bfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

// Both encodings of positive numbers grow with their value.
uint16_t encode_by_search(double value, double (*decode)(uint16_t)) {
  uint16_t low = 0;
  uint16_t high = 0x7bff;
  while (low < high) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    if (decode(middle) < value) {
      low = static_cast<uint16_t>(middle + 1);
    } else {
      high = middle;
    }
  }
  return low;
}

class PatternOfType : public testing::TestWithParam<DataType> {
 protected:
  // Calls with a number of the type's C++ type; 16-bit floats are their bits.
  template <typename Call>
  static auto with_type(Call&& call) {
    switch (GetParam()) {
      case DataType::Float32:
        return call(float{});
      case DataType::Float64:
        return call(double{});
      case DataType::Int32:
        return call(int32_t{});
      case DataType::Int64:
        return call(int64_t{});
      case DataType::Uint8:
        return call(uint8_t{});
      case DataType::Float16:
      case DataType::BFloat16:
        break;
    }
    return call(uint16_t{});
  }
  static auto half_decoder() {
    return GetParam() == DataType::Float16 ? decode_float16 : decode_bfloat16;
  }
  static double decode(const uint8_t* element) {
    return with_type([&]<typename Typed>(Typed typed) -> double {
      std::memcpy(&typed, element, sizeof(typed));
      if constexpr (std::is_same_v<Typed, uint16_t>) return half_decoder()(typed);
      return static_cast<double>(typed);
    });
  }
  static void encode(double value, uint8_t* element) {
    with_type([&]<typename Typed>(Typed typed) {
      if constexpr (std::is_same_v<Typed, uint16_t>) {
        typed = encode_by_search(value, half_decoder());
      } else {
        typed = static_cast<Typed>(value);
      }
      std::memcpy(element, &typed, sizeof(typed));
    });
  }
  static double exact_max() {
    switch (GetParam()) {
      case DataType::Float16:
        return 2048;
      case DataType::BFloat16:
        return 256;
      case DataType::Uint8:
        return 255;
      default:
        return 1 << 24;
    }
  }
  // Adds up all ranks' inputs as whole numbers and shows the pattern the sum in its type.
  static void expect_sum_is_exact(uint32_t ranks) {
    const size_t element = element_bytes(GetParam());
    std::vector<double> total(Pattern::kPeriod);
    std::vector<uint8_t> bytes(Pattern::kPeriod * element);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      Pattern::create(GetParam(), rank, ranks).value().fill(1, bytes.data(), Pattern::kPeriod);
      for (uint64_t i = 0; i < Pattern::kPeriod; ++i) {
        const double value = decode(&bytes[i * element]);
        ASSERT_GE(value, 1);
        ASSERT_EQ(value, std::floor(value));
        total[i] += value;
      }
    }
    for (uint64_t i = 0; i < Pattern::kPeriod; ++i) {
      ASSERT_LE(total[i], exact_max()) << "a partial sum may be rounded";
      encode(total[i], &bytes[i * element]);
      ASSERT_EQ(decode(&bytes[i * element]), total[i]);
    }
    const Pattern pattern = Pattern::create(GetParam(), 0, ranks).value();
    EXPECT_FALSE(pattern.verify(1, bytes.data(), Pattern::kPeriod).has_value());
  }
};

TEST_P(PatternOfType, SumsAreExact) {
  for (const uint32_t ranks : {1u, 2u, 3u, 64u}) expect_sum_is_exact(ranks);
}

INSTANTIATE_TEST_SUITE_P(All, PatternOfType,
                         testing::Values(DataType::Float32, DataType::Float64, DataType::Float16,
                                         DataType::BFloat16, DataType::Int32, DataType::Int64,
                                         DataType::Uint8),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST(Pattern, TooManyRanksForATypeAreRefused) {
  EXPECT_TRUE(Pattern::create(DataType::BFloat16, 0, 256).is_ok());
  const auto refused = Pattern::create(DataType::BFloat16, 0, 257);
  ASSERT_FALSE(refused.is_ok());
  EXPECT_EQ(
      refused.status().message(),
      "bfloat16 holds exact sums of 256 ranks at most, and there are 257; use --datatype float");
}

}  // namespace
}  // namespace braid::bench
