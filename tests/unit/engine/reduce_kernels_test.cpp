// SPDX-License-Identifier: Apache-2.0
#include "engine/reduce_kernels.h"

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hwy/targets.h"
#include "reference.h"

namespace braid::test {
namespace {

// Each test runs once per instruction set that was compiled and that this processor has.
class ReduceKernels : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

// Any bits at all: NaNs, infinities, subnormals, and integers that overflow.
std::vector<uint8_t> random_bytes(std::mt19937_64& random, size_t bytes) {
  std::vector<uint8_t> result(bytes);
  for (auto& byte : result) byte = static_cast<uint8_t>(random());
  return result;
}

// Numbers of a size that sums and products of a few keep.
std::vector<uint8_t> random_numbers(std::mt19937_64& random, DataType dtype, size_t count) {
  std::vector<uint8_t> result(count * element_bytes(dtype));
  std::uniform_real_distribution<double> floats(-4, 4);
  std::uniform_int_distribution<int> integers(dtype == DataType::Uint8 ? 0 : -100, 100);
  for (size_t i = 0; i < count; ++i) {
    store_double(dtype, is_float(dtype) ? floats(random) : integers(random), result.data(), i);
  }
  return result;
}

constexpr uint8_t kGuard = 0xA5;

// Puts operands at odd distances from an alignment, guards around the output, and compares with the
// reference.
void expect_reduced(std::mt19937_64& random, DataType dtype, Reduction reduction, size_t count,
                    size_t operand_count, size_t shift, bool any_bits, bool in_place) {
  const size_t bytes = count * element_bytes(dtype);
  std::vector<std::vector<uint8_t>> memory;
  std::vector<const uint8_t*> operands;
  for (size_t k = 0; k < operand_count; ++k) {
    const auto values =
        any_bits ? random_bytes(random, bytes) : random_numbers(random, dtype, count);
    auto& place = memory.emplace_back(
        shift + k + bytes);  // ends with the last element: a sanitizer sees reads past it
    std::copy(values.begin(), values.end(), place.begin() + static_cast<ptrdiff_t>(shift + k));
    operands.push_back(place.data() + shift + k);
  }
  const auto expected = fold_reference(dtype, reduction, operands, count);
  if (in_place) {
    auto* out = const_cast<uint8_t*>(operands.back());
    reduce_all(dtype, reduction, operands, count, out);
    EXPECT_TRUE(same_elements(dtype, out, expected.data(), count)) << "in place";
    return;
  }
  std::vector<uint8_t> out(shift + bytes + 64, kGuard);
  reduce_all(dtype, reduction, operands, count, out.data() + shift);
  EXPECT_TRUE(same_elements(dtype, out.data() + shift, expected.data(), count));
  for (size_t i = 0; i < shift; ++i) EXPECT_EQ(out[i], kGuard);
  for (size_t i = shift + bytes; i < out.size(); ++i) EXPECT_EQ(out[i], kGuard);
}

TEST_P(ReduceKernels, equal_the_scalar_reference) {
  std::mt19937_64 random(7);
  for (const DataType dtype : kAllDataTypes) {
    for (const Reduction reduction : kAllReductions) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(reduction));
      for (size_t count = 0; count <= 130; ++count) {
        const size_t operands = 1 + count % 4;
        for (const bool any_bits : {false, true}) {
          expect_reduced(random, dtype, reduction, count, operands, count % 9, any_bits, false);
          expect_reduced(random, dtype, reduction, count, operands, count % 5, any_bits, true);
        }
        if (HasFailure()) FAIL() << "count " << count;
      }
    }
  }
}

TEST_P(ReduceKernels, equal_the_scalar_reference_for_many_elements_and_operands) {
  std::mt19937_64 random(8);
  for (const DataType dtype : kAllDataTypes) {
    expect_reduced(random, dtype, Reduction::Sum, 100'003, 2, 1, false, false);
    expect_reduced(random, dtype, Reduction::Product, 10'007, 3, 3, true, true);
    expect_reduced(random, dtype, Reduction::Max, 1'001, 17, 0, true, false);
  }
}

TEST_P(ReduceKernels, give_the_same_bits_streamed_and_cached) {
  std::mt19937_64 random(9);
  constexpr size_t kCount = 1'003;
  for (const DataType dtype : kAllDataTypes) {
    for (const Reduction reduction : kAllReductions) {
      const auto a = random_numbers(random, dtype, kCount);
      const auto b = random_numbers(random, dtype, kCount);
      const std::vector operands{a.data(), b.data()};
      for (const size_t shift : {0, 8}) {  // at the border that streaming needs, and not
        SCOPED_TRACE(fmt::format("{} {} {}", to_string(dtype), to_string(reduction), shift));
        alignas(64) std::array<uint8_t, kCount * 8 + 64> streamed{};
        std::vector<uint8_t> cached(a.size());
        reduce_all(dtype, reduction, operands, kCount, streamed.data() + shift, Store::Streamed);
        reduce_all(dtype, reduction, operands, kCount, cached.data());
        EXPECT_TRUE(same_elements(dtype, streamed.data() + shift, cached.data(), kCount));
        EXPECT_EQ(streamed[shift + a.size()], 0);
      }
    }
  }
}

TEST_P(ReduceKernels, round_every_16_bit_pair_like_the_reference) {
  for (const DataType dtype : {DataType::Float16, DataType::BFloat16}) {
    std::vector<uint16_t> all(65536);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    const auto* a = reinterpret_cast<const uint8_t*>(all.data());
    for (const uint16_t other :
         {0x0000, 0x0001, 0x03ff, 0x1401, 0x3c01, 0x3f81, 0x7bff, 0x7f7f, 0x8001, 0xbc00}) {
      const std::vector<uint16_t> constant(all.size(), other);
      const auto* b = reinterpret_cast<const uint8_t*>(constant.data());
      for (const Reduction reduction : {Reduction::Sum, Reduction::Product}) {
        std::vector<uint8_t> out(all.size() * 2);
        reduce_all(dtype, reduction, std::vector{a, b}, all.size(), out.data());
        const auto expected = fold_reference(dtype, reduction, {a, b}, all.size());
        EXPECT_TRUE(same_elements(dtype, out.data(), expected.data(), all.size()))
            << to_string(dtype) << " " << to_string(reduction) << " with " << other;
      }
    }
  }
}

TEST_P(ReduceKernels, minimum_and_maximum_propagate_nan_from_either_side) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a = {nan, 1, nan, 2, -0.0F, 0.0F};
  const std::vector<float> b = {1, nan, nan, 3, 0.0F, -0.0F};
  const auto* pa = reinterpret_cast<const uint8_t*>(a.data());
  const auto* pb = reinterpret_cast<const uint8_t*>(b.data());
  std::vector<float> out(a.size());
  for (const Reduction reduction : {Reduction::Min, Reduction::Max}) {
    reduce_all(DataType::Float32, reduction, std::vector{pa, pb}, a.size(),
               reinterpret_cast<uint8_t*>(out.data()));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(out[static_cast<size_t>(i)]));
    EXPECT_EQ(out[3], reduction == Reduction::Min ? 2 : 3);
    EXPECT_TRUE(std::signbit(out[4]));  // of two zeros the earlier
    EXPECT_FALSE(std::signbit(out[5]));
  }
}

TEST_P(ReduceKernels, divide_like_the_reference) {
  std::mt19937_64 random(9);
  for (const DataType dtype : kAllDataTypes) {
    for (size_t count = 0; count <= 130; ++count) {
      for (const uint32_t divisor : {1U, 2U, 3U, 7U, 65536U}) {
        const auto values = random_numbers(random, dtype, count);
        const size_t shift = count % 7;
        std::vector<uint8_t> memory(shift + values.size());
        std::copy(values.begin(), values.end(), memory.begin() + static_cast<ptrdiff_t>(shift));
        auto expected = values;
        divide_reference(dtype, expected.data(), count, divisor);
        divide_all(dtype, memory.data() + shift, count, divisor);
        ASSERT_TRUE(same_elements(dtype, memory.data() + shift, expected.data(), count))
            << to_string(dtype) << " count " << count << " divisor " << divisor;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ReduceKernels,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& param) {
                           return std::string(hwy::TargetName(param.param));
                         });

}  // namespace
}  // namespace braid::test
