// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace braid::test {
namespace {

// Rounds to a binary format with `digits` bits after the leading one and smallest normal exponent
// `exponent_min`.
double round_to_format(double value, int digits, int exponent_min) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double spacing = std::ldexp(1.0, std::max(std::ilogb(value), exponent_min) - digits);
  return std::nearbyint(value / spacing) * spacing;
}

template <typename T>
T load(const uint8_t* data, uint64_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(T value, uint8_t* data, uint64_t index) {
  std::memcpy(data + index * sizeof(T), &value, sizeof(T));
}

template <typename T>
T apply(Reduction reduction, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto ua = static_cast<uint64_t>(a);
    const auto ub = static_cast<uint64_t>(b);
    switch (reduction) {
      case Reduction::Sum:
      case Reduction::Average:
        return static_cast<T>(ua + ub);
      case Reduction::Product:
        return static_cast<T>(ua * ub);
      case Reduction::Min:
        return std::min(a, b);
      case Reduction::Max:
        return std::max(a, b);
    }
  } else {
    switch (reduction) {
      case Reduction::Sum:
      case Reduction::Average:
        return a + b;
      case Reduction::Product:
        return a * b;
      case Reduction::Min:
        return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : b < a ? b : a;
      case Reduction::Max:
        return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : b > a ? b : a;
    }
  }
  return a;
}

// Calls `visit` with (load, store) functions for the dtype's arithmetic.
template <typename Visit>
void with_arithmetic(DataType dtype, Visit visit) {
  switch (dtype) {
    case DataType::Float32:
      return visit(load<float>, store<float>);
    case DataType::Float64:
      return visit(load<double>, store<double>);
    case DataType::Float16:
      return visit(
          [](const uint8_t* data, uint64_t i) { return half_to_float(load<uint16_t>(data, i)); },
          [](float value, uint8_t* data, uint64_t i) { store(float_to_half(value), data, i); });
    case DataType::BFloat16:
      return visit(
          [](const uint8_t* data, uint64_t i) {
            return bfloat16_to_float(load<uint16_t>(data, i));
          },
          [](float value, uint8_t* data, uint64_t i) { store(float_to_bfloat16(value), data, i); });
    case DataType::Int32:
      return visit(load<int32_t>, store<int32_t>);
    case DataType::Int64:
      return visit(load<int64_t>, store<int64_t>);
    case DataType::Uint8:
      return visit(load<uint8_t>, store<uint8_t>);
  }
}

}  // namespace

float half_to_float(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, -24);
  } else {
    value = std::ldexp(1024 + mantissa, exponent - 25);
  }
  return static_cast<float>((bits & 0x8000) != 0 ? -value : value);
}

uint16_t float_to_half(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return sign | 0x7e00;
  const double rounded = std::abs(round_to_format(value, 10, -14));
  if (rounded > 65504) return sign | 0x7c00;
  if (rounded < std::ldexp(1.0, -14))
    return static_cast<uint16_t>(sign | static_cast<int>(std::ldexp(rounded, 24)));
  const int exponent = std::ilogb(rounded);
  const int mantissa = static_cast<int>(std::ldexp(rounded, 10 - exponent)) - 1024;
  return static_cast<uint16_t>(sign | (exponent + 15) << 10 | mantissa);
}

float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t float_to_bfloat16(float value) {
  if (std::isnan(value)) return 0x7fc0;
  const double rounded = round_to_format(value, 7, -126);
  // Past the largest number the double does not fit into a float; the upper half of infinity's bits
  // is right then.
  const float fitting = std::abs(rounded) > std::numeric_limits<float>::max()
                            ? std::copysign(std::numeric_limits<float>::infinity(), value)
                            : static_cast<float>(rounded);
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(fitting) >> 16);
}

double element_as_double(DataType dtype, const uint8_t* data, uint64_t index) {
  double result = 0;
  with_arithmetic(dtype, [&](auto get, auto) { result = static_cast<double>(get(data, index)); });
  return result;
}

void store_double(DataType dtype, double value, uint8_t* data, uint64_t index) {
  with_arithmetic(dtype, [&](auto get, auto put) {
    using T = decltype(get(data, index));
    put(static_cast<T>(value), data, index);
  });
}

std::vector<uint8_t> fold_reference(DataType dtype, Reduction reduction,
                                    const std::vector<const uint8_t*>& operands, uint64_t count) {
  std::vector<uint8_t> out(count * element_bytes(dtype));
  with_arithmetic(dtype, [&](auto get, auto put) {
    for (uint64_t i = 0; i < count; ++i) {
      auto sum = get(operands[0], i);
      for (size_t k = 1; k < operands.size(); ++k) sum = apply(reduction, sum, get(operands[k], i));
      put(sum, out.data(), i);
    }
  });
  return out;
}

void divide_reference(DataType dtype, uint8_t* data, uint64_t count, uint32_t divisor) {
  with_arithmetic(dtype, [&](auto get, auto put) {
    for (uint64_t i = 0; i < count; ++i) {
      const auto value = get(data, i);
      using T = std::remove_const_t<decltype(value)>;
      if constexpr (std::is_integral_v<T>) {
        put(static_cast<T>(static_cast<int64_t>(value) / int64_t{divisor}), data, i);
      } else {
        put(value / static_cast<T>(divisor), data, i);
      }
    }
  });
}

bool same_elements(DataType dtype, const uint8_t* a, const uint8_t* b, uint64_t count) {
  const size_t bytes = element_bytes(dtype);
  for (uint64_t i = 0; i < count; ++i) {
    if (std::memcmp(a + i * bytes, b + i * bytes, bytes) == 0) continue;
    if (!std::isnan(element_as_double(dtype, a, i)) || !std::isnan(element_as_double(dtype, b, i)))
      return false;
  }
  return true;
}

}  // namespace braid::test
