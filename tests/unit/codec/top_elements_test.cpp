// SPDX-License-Identifier: Apache-2.0
#include "codec/top_elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "codec_world.h"

namespace braid::test {
namespace {

constexpr uint64_t kManyElements = 100'000;

uint32_t magnitude(float value) { return std::bit_cast<uint32_t>(value) & kMagnitudeMask; }

std::vector<uint32_t> sorted_top(const std::vector<float>& values, uint64_t k) {
  std::vector<uint32_t> order(values.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return magnitude(values[a]) > magnitude(values[b]);
  });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<uint32_t> top_of(const std::vector<float>& values, uint64_t k,
                             const std::function<uint32_t(uint64_t)>& sample) {
  TopElements top(values.size(), k, sample);
  for (size_t at = 0; at < values.size(); at += 777) {
    top.look_at(values.data() + at, std::min<size_t>(777, values.size() - at));
  }
  return top.choose(values.data());
}

void expect_top(const std::vector<float>& values, const std::string& what) {
  for (const uint64_t k : {uint64_t{1}, uint64_t{2}, values.size() / 1000 + 1,
                           values.size() / 100 + 1, values.size() / 2 + 1, values.size()}) {
    if (k > values.size()) continue;
    const auto expected = sorted_top(values, k);
    const auto honest = [&](uint64_t i) { return magnitude(values[i]); };
    ASSERT_EQ(top_of(values, k, honest), expected) << what << ", k = " << k;
    // A sample that knows nothing costs time, and changes nothing: too few, or too many are picked.
    ASSERT_EQ(top_of(values, k, [](uint64_t) { return 0u; }), expected) << what << ", k = " << k;
    ASSERT_EQ(top_of(values, k, [](uint64_t) { return kMagnitudeMask; }), expected)
        << what << ", k = " << k;
  }
}

TEST(TopElements, are_the_largest_of_any_distribution) {
  expect_top(gradient_of(kManyElements, 1), "gradient");
  expect_top(std::vector<float>(kManyElements, 1.0f), "all equal");
  expect_top(std::vector<float>(kManyElements, 0.0f), "all zero");
  auto values = gradient_of(kManyElements, 2);
  for (float& value : values) value = std::nearbyint(value);
  expect_top(values, "few different ones");
  for (size_t i = 0; i < kManyElements; ++i) values[i] = static_cast<float>(i);
  expect_top(values, "ascending");
  std::reverse(values.begin(), values.end());
  expect_top(values, "descending");
  for (size_t i = 0; i < kManyElements; ++i) values[i] = i % 64 == 0 ? 5.0f : 1e-20f;
  expect_top(values, "periodic");
  for (size_t i = 0; i < kManyElements; ++i)
    values[i] = i % 64 == 5 ? static_cast<float>(i % 3) - 1 : -0.0f;
  expect_top(values, "few that are not zero");
  values = gradient_of(kManyElements, 3);
  for (size_t i = 0; i < 3000; ++i) values[i * 17] = std::nanf("1");
  for (size_t i = 0; i < 3000; ++i) values[i * 13 + 5] = -HUGE_VALF;
  expect_top(values, "not finite");
}

TEST(TopElements, are_the_largest_of_few) {
  for (const uint64_t count : {1, 2, 3, 15, 16, 17, 100, 1023, 1025, 5000}) {
    expect_top(gradient_of(count, count), std::to_string(count) + " elements");
  }
}

}  // namespace
}  // namespace braid::test
