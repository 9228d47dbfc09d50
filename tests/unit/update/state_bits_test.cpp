// SPDX-License-Identifier: Apache-2.0
#include "update/state_bits.h"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "reference.h"

namespace braid::test {
namespace {

constexpr uint64_t kValues = 1003;
constexpr size_t kShift = 1;  // bytes of a chunk need no alignment

// Any bits that are no NaN, for NaNs become quiet where they are rounded.
std::vector<float> any_floats(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> floats(kValues);
  for (float& one : floats) {
    auto bits = static_cast<uint32_t>(random());
    if ((bits & 0x7f800000) == 0x7f800000) bits = 0x7f800000;
    std::memcpy(&one, &bits, sizeof(bits));
  }
  return floats;
}

uint8_t* bytes_of(std::vector<float>& floats) { return reinterpret_cast<uint8_t*>(floats.data()); }

std::vector<uint8_t> fetched(DataType dtype, StateBits bits, std::vector<float>& state) {
  std::vector<uint8_t> place(kShift + kValues * element_bytes(dtype));
  fetch_values(dtype, bits, bytes_of(state), kValues, place.data() + kShift);
  return place;
}

void load_floats(DataType dtype, StateBits bits, const std::vector<uint8_t>& place,
                 std::vector<float>& state) {
  load_values(dtype, bits, place.data() + kShift, kValues, bytes_of(state));
}

TEST(StateBits, of_whole_floats_are_the_values) {
  auto state = any_floats(1);
  const auto place = fetched(DataType::Float32, StateBits::Rounded, state);
  std::vector<float> loaded(kValues);
  load_floats(DataType::Float32, StateBits::Rounded, place, loaded);
  EXPECT_EQ(loaded, state);

  std::vector<double> doubles(kValues, 1.0 / 3);
  std::vector<uint8_t> chunk(kValues * sizeof(double));
  fetch_values(DataType::Float64, StateBits::Rounded, reinterpret_cast<uint8_t*>(doubles.data()),
               kValues, chunk.data());
  std::vector<double> loaded_doubles(kValues);
  load_values(DataType::Float64, StateBits::Rounded, chunk.data(), kValues,
              reinterpret_cast<uint8_t*>(loaded_doubles.data()));
  EXPECT_EQ(loaded_doubles, doubles);
}

TEST(StateBits, of_16_bit_tensors_are_rounded_to_nearest_even) {
  for (const DataType dtype : {DataType::Float16, DataType::BFloat16}) {
    auto state = any_floats(2);
    const auto place = fetched(dtype, StateBits::Rounded, state);
    std::vector<uint8_t> expected(kValues * sizeof(uint16_t));
    for (uint64_t i = 0; i < kValues; ++i) store_double(dtype, state[i], expected.data(), i);
    EXPECT_TRUE(same_elements(dtype, place.data() + kShift, expected.data(), kValues));
    std::vector<float> loaded(kValues);
    load_floats(dtype, StateBits::Rounded, place, loaded);
    EXPECT_EQ(fetched(dtype, StateBits::Rounded, loaded), place);
    for (uint64_t i = 0; i < kValues; ++i) {
      EXPECT_EQ(loaded[i], element_as_double(dtype, expected.data(), i));
    }
  }
}

TEST(StateBits, come_in_two_halves_that_lose_nothing) {
  for (const DataType dtype : {DataType::Float16, DataType::BFloat16}) {
    auto state = any_floats(3);
    const auto high = fetched(dtype, StateBits::High, state);
    const auto low = fetched(dtype, StateBits::Low, state);
    std::vector<float> loaded(kValues, 7.0f);
    load_floats(dtype, StateBits::High, high, loaded);
    load_floats(dtype, StateBits::Low, low, loaded);
    EXPECT_EQ(std::memcmp(loaded.data(), state.data(), kValues * sizeof(float)), 0);
  }
}

TEST(StateBits, of_one_half_leave_the_other_as_it_is) {
  auto state = any_floats(4);
  auto other = any_floats(5);
  load_floats(DataType::BFloat16, StateBits::Low,
              fetched(DataType::BFloat16, StateBits::Low, other), state);
  auto before = any_floats(4);
  EXPECT_EQ(fetched(DataType::BFloat16, StateBits::High, state),
            fetched(DataType::BFloat16, StateBits::High, before));
  EXPECT_EQ(fetched(DataType::BFloat16, StateBits::Low, state),
            fetched(DataType::BFloat16, StateBits::Low, other));
}

}  // namespace
}  // namespace braid::test
