// SPDX-License-Identifier: Apache-2.0
#include "bench/pattern.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/hash.h"

namespace braid::bench {
namespace {

constexpr uint64_t kValueMax = 1000;
constexpr uint64_t kShift =
    389;  // between two iterations; any number that is no multiple of the period

// Up to here every whole number is exact, and so is every partial sum.
uint64_t exact_max(DataType dtype) {
  switch (dtype) {
    case DataType::Float32:
      return 1ull << 24;
    case DataType::Float64:
      return 1ull << 53;
    case DataType::Float16:
      return 1ull << 11;
    case DataType::BFloat16:
      return 1ull << 8;
    case DataType::Int32:
      return INT32_MAX;
    case DataType::Int64:
      return INT64_MAX;
    case DataType::Uint8:
      return UINT8_MAX;
  }
  return 0;
}

// A whole number that a float16 holds exactly.
uint16_t to_float16(uint64_t value) {
  if (value == 0) return 0;
  const int exponent = static_cast<int>(std::bit_width(value)) - 1;
  const uint64_t rest = value - (1ull << exponent);
  const uint64_t mantissa = exponent <= 10 ? rest << (10 - exponent) : rest >> (exponent - 10);
  return static_cast<uint16_t>(((exponent + 15) << 10) | static_cast<int>(mantissa));
}

uint16_t to_bfloat16(uint64_t value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
}

template <typename T>
void store(uint8_t* out, T value) {
  std::memcpy(out, &value, sizeof(value));
}

void store_element(DataType dtype, uint8_t* out, uint64_t value) {
  switch (dtype) {
    case DataType::Float32:
      return store(out, static_cast<float>(value));
    case DataType::Float64:
      return store(out, static_cast<double>(value));
    case DataType::Float16:
      return store(out, to_float16(value));
    case DataType::BFloat16:
      return store(out, to_bfloat16(value));
    case DataType::Int32:
      return store(out, static_cast<int32_t>(value));
    case DataType::Int64:
      return store(out, static_cast<int64_t>(value));
    case DataType::Uint8:
      return store(out, static_cast<uint8_t>(value));
  }
}

// For people; 16-bit floats as their bits.
std::string show_element(DataType dtype, const uint8_t* element) {
  const auto load = [element](auto value) {
    std::memcpy(&value, element, sizeof(value));
    return value;
  };
  switch (dtype) {
    case DataType::Float32:
      return fmt::format("{}", load(float{}));
    case DataType::Float64:
      return fmt::format("{}", load(double{}));
    case DataType::Float16:
    case DataType::BFloat16:
      return fmt::format("{:#06x}", load(uint16_t{}));
    case DataType::Int32:
      return fmt::format("{}", load(int32_t{}));
    case DataType::Int64:
      return fmt::format("{}", load(int64_t{}));
    case DataType::Uint8:
      return fmt::format("{}", load(uint8_t{}));
  }
  return {};
}

// 1 … max: never 0, so that an input which is left out changes every element.
uint64_t value_of(uint64_t rank, uint64_t position, uint64_t max) {
  return 1 + mix64(rank * Pattern::kPeriod + position) % max;
}

}  // namespace

Result<Pattern> Pattern::create(DataType dtype, uint32_t rank, uint32_t world_size) {
  const uint64_t max = std::min(exact_max(dtype) / world_size, kValueMax);
  if (max == 0) {
    return make_status(
        StatusCode::InvalidArgument,
        "{} holds exact sums of {} ranks at most, and there are {}; use --dtype float32",
        to_string(dtype), exact_max(dtype), world_size);
  }
  const size_t element = element_bytes(dtype);
  std::vector<uint8_t> input(2 * kPeriod * element);
  std::vector<uint8_t> sum(2 * kPeriod * element);
  for (uint64_t i = 0; i < kPeriod; ++i) {
    uint64_t total = 0;
    for (uint64_t other = 0; other < world_size; ++other) total += value_of(other, i, max);
    for (const uint64_t at : {i, i + kPeriod}) {
      store_element(dtype, &input[at * element], value_of(rank, i, max));
      store_element(dtype, &sum[at * element], total);
    }
  }
  return Pattern(dtype, std::move(input), std::move(sum));
}

void Pattern::fill(uint64_t iteration, void* out, uint64_t count) const {
  const size_t element = element_bytes(dtype_);
  const uint8_t* period = &input_[iteration * kShift % kPeriod * element];
  auto* to = static_cast<uint8_t*>(out);
  for (uint64_t done = 0; done < count; done += kPeriod) {
    std::memcpy(to + done * element, period, std::min(kPeriod, count - done) * element);
  }
}

std::optional<Pattern::Mismatch> Pattern::verify(uint64_t iteration, const void* sum,
                                                 uint64_t count) const {
  const size_t element = element_bytes(dtype_);
  const uint8_t* period = &sum_[iteration * kShift % kPeriod * element];
  const auto* from = static_cast<const uint8_t*>(sum);
  for (uint64_t done = 0; done < count; done += kPeriod) {
    const uint64_t here = std::min(kPeriod, count - done);
    if (std::memcmp(from + done * element, period, here * element) == 0) continue;
    for (uint64_t i = 0; i < here; ++i) {
      const uint8_t* actual = from + (done + i) * element;
      const uint8_t* expected = period + i * element;
      if (std::memcmp(actual, expected, element) == 0) continue;
      return Mismatch{done + i, show_element(dtype_, expected), show_element(dtype_, actual)};
    }
  }
  return std::nullopt;
}

}  // namespace braid::bench
