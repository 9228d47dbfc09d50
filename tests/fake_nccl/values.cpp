// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace fake_nccl {
namespace {

/// A float32's upper half.
struct Bfloat16 {
  std::uint16_t bits;

  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  static Bfloat16 from(float value) {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    if ((wide & 0x7FFFFFFF) > 0x7F800000) {
      return {static_cast<std::uint16_t>((wide >> 16) | 0x40)};  // NaN
    }
    // To the nearest, and to the even one of two.
    return {static_cast<std::uint16_t>((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16)};
  }
};

/// What values of the type are added as.
template <typename Value>
using Sum = std::conditional_t<std::is_same_v<Value, _Float16> || std::is_same_v<Value, Bfloat16>,
                               float, Value>;

template <typename Number>
Number combine(Number a, Number b, NcclReduction reduction) {
  switch (reduction) {
    case NcclReduction::Max:
      return std::max(a, b);
    case NcclReduction::Min:
      return std::min(a, b);
    case NcclReduction::Product:
    case NcclReduction::Sum:
    case NcclReduction::Average:
      break;
  }
  const bool is_product = reduction == NcclReduction::Product;
  if constexpr (std::is_integral_v<Number>) {
    // Integers wrap.
    const auto wide_a = static_cast<std::uint64_t>(a), wide_b = static_cast<std::uint64_t>(b);
    return static_cast<Number>(is_product ? wide_a * wide_b : wide_a + wide_b);
  } else {
    return is_product ? a * b : a + b;
  }
}

template <typename Value>
void reduce_values(const std::vector<const std::byte*>& parts, std::byte* result, std::size_t count,
                   NcclReduction reduction) {
  const auto load = [&](std::size_t part, std::size_t i) {
    Value value;
    std::memcpy(&value, parts[part] + i * sizeof(Value), sizeof(Value));
    return static_cast<Sum<Value>>(value);
  };
  for (std::size_t i = 0; i < count; ++i) {
    Sum<Value> sum = load(0, i);
    for (std::size_t part = 1; part < parts.size(); ++part) {
      sum = combine(sum, load(part, i), reduction);
    }
    if (reduction == NcclReduction::Average) {
      sum = static_cast<Sum<Value>>(sum / static_cast<Sum<Value>>(parts.size()));
    }
    Value rounded;
    if constexpr (std::is_same_v<Value, Bfloat16>) {
      rounded = Bfloat16::from(sum);
    } else {
      rounded = static_cast<Value>(sum);
    }
    std::memcpy(result + i * sizeof(Value), &rounded, sizeof(Value));
  }
}

}  // namespace

std::size_t bytes_of(NcclType type) {
  switch (type) {
    case NcclType::Int8:
    case NcclType::Uint8:
      return 1;
    case NcclType::Float16:
    case NcclType::Bfloat16:
      return 2;
    case NcclType::Int32:
    case NcclType::Uint32:
    case NcclType::Float32:
      return 4;
    case NcclType::Int64:
    case NcclType::Uint64:
    case NcclType::Float64:
      return 8;
  }
  return 0;
}

const char* name_of(NcclType type) {
  constexpr const char* kNames[] = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                    "uint64", "float16", "float32", "float64", "bfloat16"};
  return bytes_of(type) == 0 ? "?" : kNames[static_cast<int>(type)];
}

const char* name_of(NcclReduction reduction) {
  constexpr const char* kNames[] = {"sum", "product", "max", "min", "average"};
  const auto at = static_cast<unsigned>(reduction);
  return at < std::size(kNames) ? kNames[at] : nullptr;
}

void reduce(const std::vector<const std::byte*>& parts, std::byte* result, std::size_t count,
            NcclType type, NcclReduction reduction) {
  switch (type) {
    case NcclType::Int8:
      return reduce_values<std::int8_t>(parts, result, count, reduction);
    case NcclType::Uint8:
      return reduce_values<std::uint8_t>(parts, result, count, reduction);
    case NcclType::Int32:
      return reduce_values<std::int32_t>(parts, result, count, reduction);
    case NcclType::Uint32:
      return reduce_values<std::uint32_t>(parts, result, count, reduction);
    case NcclType::Int64:
      return reduce_values<std::int64_t>(parts, result, count, reduction);
    case NcclType::Uint64:
      return reduce_values<std::uint64_t>(parts, result, count, reduction);
    case NcclType::Float16:
      return reduce_values<_Float16>(parts, result, count, reduction);
    case NcclType::Float32:
      return reduce_values<float>(parts, result, count, reduction);
    case NcclType::Float64:
      return reduce_values<double>(parts, result, count, reduction);
    case NcclType::Bfloat16:
      return reduce_values<Bfloat16>(parts, result, count, reduction);
  }
}

}  // namespace fake_nccl
