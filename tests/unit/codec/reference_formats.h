// SPDX-License-Identifier: Apache-2.0
// What the reference is made of: bytes in a row, and number formats of few bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace braid::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class ByteWriter {
 public:
  template <typename T>
  void put(T value) {
    const auto* const from = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
  }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  template <typename T>
  T get() {
    T value;
    EXPECT_LE(at_ + sizeof(T), bytes_.size());
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

// A number format with `mantissa` bits whose normal numbers begin at 2^least.
struct SmallFloat {
  int mantissa;
  int least;
  uint32_t largest_code;
  uint32_t infinity_code;  // what is above becomes this; of fp8 the largest code

  double step_at(double magnitude) const {
    const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
    return std::ldexp(1.0, exponent - mantissa);
  }
  double value(uint32_t code) const {
    const uint32_t exponent = code >> mantissa;
    const auto rest = static_cast<double>(code & ((1u << mantissa) - 1));
    if (exponent == 0) return std::ldexp(rest, least - mantissa);
    return std::ldexp(rest + std::ldexp(1.0, mantissa),
                      least - mantissa + static_cast<int>(exponent) - 1);
  }
  uint32_t code(double magnitude) const {  // of a value that has one
    for (uint32_t low = 0, high = largest_code;;) {
      if (low == high) return value(low) < magnitude ? infinity_code : low;
      const uint32_t middle = (low + high) / 2;
      if (value(middle) < magnitude) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
  }
  uint32_t nearest(double magnitude) const {
    const double step = step_at(magnitude);
    return code(std::nearbyint(magnitude / step) * step);
  }
  uint32_t dithered(double magnitude, double unit) const {
    const double step = step_at(magnitude);
    const double below = std::floor(magnitude / step);
    return code((below + (unit < magnitude / step - below ? 1 : 0)) * step);
  }
};

inline constexpr SmallFloat kBf16 = {7, -126, 0x7f7f, 0x7f80};
inline constexpr SmallFloat kFp16 = {10, -14, 0x7bff, 0x7c00};
inline constexpr SmallFloat kE4M3 = {3, -6, 0x7e, 0x7e};
inline constexpr SmallFloat kE5M2 = {2, -14, 0x7b, 0x7b};

}  // namespace braid::test
