// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace braid {

// A number that one thread writes and any thread reads. It costs its writer no more than a plain
// one: nothing is locked, and no cache line is fought for.
class SharedNumber {
 public:
  void set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(uint64_t amount) { set(get() + amount); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace braid
