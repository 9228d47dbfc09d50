// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <time.h>

namespace braid {

// Monotonic time in nanoseconds. Code that decides by time takes a Clock, so that tests give it
// theirs.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual uint64_t now_ns() const = 0;
  uint64_t now_ms() const { return now_ns() / 1'000'000; }
};

class SystemClock final : public Clock {
 public:
  uint64_t now_ns() const override {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  }
};

}  // namespace braid
