// SPDX-License-Identifier: Apache-2.0
#include "planning/finite_look.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

template <typename Element>
bool looks_finite(const std::vector<Element>& elements, DataType dtype) {
  return looks_finite(reinterpret_cast<const uint8_t*>(elements.data()),
                      elements.size() * sizeof(Element), dtype);
}

TEST(FiniteLook, SeesEveryElementOfASmallGradient) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> small(100, 1.5F);
    EXPECT_TRUE(looks_finite(small, DataType::Float32));
    for (const size_t place : {0U, 50U, 99U}) {
      small[place] = bad;
      EXPECT_FALSE(looks_finite(small, DataType::Float32)) << place;
      small[place] = std::numeric_limits<float>::max();
    }
  }
}

TEST(FiniteLook, SeesBothEndsAndTheMiddleOfALargeOne) {
  std::vector<float> large(1'000'003, 0.F);
  for (const size_t place : {size_t{0}, size_t{127}, size_t{500'000}, large.size() - 1}) {
    large[place] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(looks_finite(large, DataType::Float32)) << place;
    large[place] = -1;
  }
  large[250'000] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(looks_finite(large, DataType::Float32)) << "nobody looks there";
}

TEST(FiniteLook, KnowsAllDataTypes) {
  EXPECT_FALSE(looks_finite(std::vector<double>{1, std::numeric_limits<double>::infinity()},
                            DataType::Float64));
  EXPECT_TRUE(looks_finite(std::vector<double>{1, 1e300}, DataType::Float64));
  EXPECT_FALSE(looks_finite(std::vector<uint16_t>{0x3c00, 0xfe00}, DataType::Float16));
  EXPECT_TRUE(looks_finite(std::vector<uint16_t>{0x3c00, 0x7bff}, DataType::Float16));
  EXPECT_FALSE(looks_finite(std::vector<uint16_t>{0x3f80, 0x7f80}, DataType::BFloat16));
  EXPECT_TRUE(looks_finite(std::vector<uint16_t>{0x3f80, 0x7f7f}, DataType::BFloat16));
  EXPECT_TRUE(looks_finite(std::vector<int32_t>{-1, 0x7fc00000}, DataType::Int32));
  EXPECT_TRUE(looks_finite(std::vector<float>{}, DataType::Float32));
}

TEST(FiniteLook, StepsAreCountedOnce) {
  NotFiniteSteps seen;
  seen.add(7, "b");
  seen.add(7, "a");
  seen.add(9, "a");
  EXPECT_EQ(seen.steps, 2u);
  EXPECT_EQ(seen.first_step, 7u);
  EXPECT_EQ(seen.last_step, 9u);
  EXPECT_EQ(seen.first_tensor, "b");
}

}  // namespace
}  // namespace braid
