// SPDX-License-Identifier: Apache-2.0
#include "bench/pattern.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/assert.h"
#include "base/hash.h"

namespace braid::bench {
namespace {

constexpr uint64_t kValueMax = 1000;
constexpr uint64_t kFactorsMax = 30;  // of a product that are 2
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

// The greatest one of each rank. 0: not even ones will do.
uint64_t value_max(DataType dtype, std::optional<Reduction> reduction, uint64_t world_size) {
  const uint64_t exact = exact_max(dtype);
  if (reduction == Reduction::Sum) return std::min(exact / world_size, kValueMax);
  if (reduction == Reduction::Average)
    return std::min(exact / world_size / world_size, kValueMax) * world_size;
  if (reduction == Reduction::Product)
    return std::min<uint64_t>(std::bit_width(exact) - 1, kFactorsMax);
  return std::min(exact, kValueMax);
}

// How many ranks' sums, or averages, are exact.
uint64_t ranks_max(DataType dtype, Reduction reduction) {
  uint64_t ranks = exact_max(dtype);
  if (reduction == Reduction::Average)
    ranks = static_cast<uint64_t>(std::sqrt(static_cast<double>(ranks)));
  return ranks;
}

}  // namespace

// 1 … max: never 0, so that an input which is left out changes every element of a sum.
uint64_t Pattern::Values::of(uint64_t rank, uint64_t position) const {
  const uint64_t number = mix64(rank * kPeriod + position);
  if (reduction == Reduction::Product) {
    // Twos, each position's of other ranks: no product is more than 2^max.
    const bool may_be_two = (rank + position) % std::max(world_size, max) < max;
    return may_be_two ? 1 + number % 2 : 1;
  }
  // All are multiples of the number of ranks, so the average is a whole number.
  if (reduction == Reduction::Average) return (1 + number % (max / world_size)) * world_size;
  return 1 + number % max;
}

uint64_t Pattern::Values::reduced(uint64_t position) const {
  uint64_t total = of(0, position);
  for (uint64_t rank = 1; rank < world_size; ++rank) {
    const uint64_t value = of(rank, position);
    switch (*reduction) {
      case Reduction::Sum:
      case Reduction::Average:
        total += value;
        break;
      case Reduction::Min:
        total = std::min(total, value);
        break;
      case Reduction::Max:
        total = std::max(total, value);
        break;
      case Reduction::Product:
        total *= value;
        break;
    }
  }
  return *reduction == Reduction::Average ? total / world_size : total;
}

Result<Pattern> Pattern::create(DataType dtype, uint32_t rank, uint32_t world_size,
                                std::optional<Reduction> reduction) {
  const uint64_t max = value_max(dtype, reduction, world_size);
  if (max == 0) {
    return make_status(
        StatusCode::InvalidArgument,
        "{} holds exact {}s of {} ranks at most, and there are {}; use --datatype float",
        to_string(dtype), to_string(*reduction), ranks_max(dtype, *reduction), world_size);
  }
  return Pattern(dtype, Values{reduction, world_size, max}, rank);
}

Pattern::Pattern(DataType dtype, Values values, uint32_t rank)
    : dtype_(dtype),
      values_(values),
      input_(periods([&](uint64_t position) { return values.of(rank, position); })) {
  if (values.reduction)
    reduced_ = periods([&](uint64_t position) { return values.reduced(position); });
}

template <typename ValueOf>
std::vector<uint8_t> Pattern::periods(ValueOf value_of) const {
  const size_t element = element_bytes(dtype_);
  std::vector<uint8_t> bytes(2 * kPeriod * element);
  for (uint64_t i = 0; i < kPeriod; ++i) store_element(dtype_, &bytes[i * element], value_of(i));
  std::copy_n(bytes.begin(), kPeriod * element, bytes.begin() + kPeriod * element);
  return bytes;
}

void Pattern::fill(uint64_t iteration, void* out, uint64_t count) const {
  const size_t element = element_bytes(dtype_);
  const uint8_t* period = &input_[iteration * kShift % kPeriod * element];
  auto* to = static_cast<uint8_t*>(out);
  for (uint64_t done = 0; done < count; done += kPeriod) {
    std::memcpy(to + done * element, period, std::min(kPeriod, count - done) * element);
  }
}

std::optional<Pattern::Mismatch> Pattern::verify(uint64_t iteration, const void* reduced,
                                                 uint64_t count, uint64_t first) const {
  BRAID_ASSERT(values_.reduction, "nothing is reduced");
  return compare(reduced_, iteration * kShift + first, reduced, count);
}

std::optional<Pattern::Mismatch> Pattern::verify_input_of(uint32_t rank, uint64_t iteration,
                                                          const void* copied, uint64_t count,
                                                          uint64_t first) const {
  const auto right = periods([&](uint64_t position) { return values_.of(rank, position); });
  return compare(right, iteration * kShift + first, copied, count);
}

std::optional<Pattern::Mismatch> Pattern::compare(const std::vector<uint8_t>& right, uint64_t start,
                                                  const void* data, uint64_t count) const {
  const size_t element = element_bytes(dtype_);
  const uint8_t* period = &right[start % kPeriod * element];
  const auto* from = static_cast<const uint8_t*>(data);
  std::optional<Mismatch> found;
  for (uint64_t done = 0; done < count; done += kPeriod) {
    const uint64_t here = std::min(kPeriod, count - done);
    if (std::memcmp(from + done * element, period, here * element) == 0) continue;
    for (uint64_t i = 0; i < here; ++i) {
      const uint8_t* actual = from + (done + i) * element;
      const uint8_t* expected = period + i * element;
      if (std::memcmp(actual, expected, element) == 0) continue;
      if (!found)
        found = {done + i, show_element(dtype_, expected), show_element(dtype_, actual), 0};
      ++found->wrong;
    }
  }
  return found;
}

}  // namespace braid::bench
