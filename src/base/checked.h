// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/assert.h"

namespace braid {

// A number of 64 bits that a trainer, a peer or a file has given, or that is made of such ones.
// Where a sum, product, difference or shift does not fit, it has no value from then on, and so has
// what is made of it: a formula is written as it is meant, and its end is asked once.
class CheckedNumber {
 public:
  // A negative number has no value.
  template <std::integral T>
  constexpr CheckedNumber(T number) {  // NOLINT: implicit, so that formulas read as such
    if (number >= T{0}) value_ = static_cast<uint64_t>(number);
  }
  static constexpr CheckedNumber none() {
    CheckedNumber number(0U);
    number.value_.reset();
    return number;
  }

  constexpr std::optional<uint64_t> value() const { return value_; }
  constexpr uint64_t value_or(uint64_t other) const { return value_.value_or(other); }
  // Nothing: it does not fit into the type.
  template <std::unsigned_integral T>
  constexpr std::optional<T> as() const {
    if (!is_at_most(std::numeric_limits<T>::max())) return std::nullopt;
    return static_cast<T>(*value_);
  }
  // False where there is no value.
  constexpr bool is_at_most(uint64_t limit) const { return value_ && *value_ <= limit; }

  friend constexpr CheckedNumber operator+(CheckedNumber a, CheckedNumber b) {
    uint64_t sum = 0;
    if (!a.value_ || !b.value_ || __builtin_add_overflow(*a.value_, *b.value_, &sum)) return none();
    return sum;
  }
  friend constexpr CheckedNumber operator-(CheckedNumber a, CheckedNumber b) {
    if (!a.value_ || !b.is_at_most(*a.value_)) return none();
    return *a.value_ - *b.value_;
  }
  friend constexpr CheckedNumber operator*(CheckedNumber a, CheckedNumber b) {
    uint64_t product = 0;
    if (!a.value_ || !b.value_ || __builtin_mul_overflow(*a.value_, *b.value_, &product))
      return none();
    return product;
  }
  friend constexpr CheckedNumber operator<<(CheckedNumber a, CheckedNumber bits) {
    if (!bits.is_at_most(63)) return none();
    return a * (uint64_t{1} << *bits.value_);
  }
  constexpr CheckedNumber& operator+=(CheckedNumber other) { return *this = *this + other; }
  constexpr CheckedNumber& operator*=(CheckedNumber other) { return *this = *this * other; }

 private:
  std::optional<uint64_t> value_;
};

// Does [offset, offset + bytes) lie inside [0, size)?
constexpr bool range_fits(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

constexpr uint64_t divide_up(uint64_t value, uint64_t divisor) {
  return value / divisor + (value % divisor != 0 ? 1 : 0);
}

constexpr CheckedNumber checked_round_up(CheckedNumber value, uint64_t multiple) {
  if (!value.value()) return value;
  return CheckedNumber(divide_up(*value.value(), multiple)) * multiple;
}

// For numbers whose bounds were checked.
constexpr uint64_t round_up(uint64_t value, uint64_t multiple) {
  uint64_t rounded = 0;
  const bool wraps = __builtin_mul_overflow(divide_up(value, multiple), multiple, &rounded);
  BRAID_ASSERT(!wraps, "what is rounded up was checked");
  return rounded;
}

}  // namespace braid
