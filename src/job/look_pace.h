// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace braid {

// When a look at all of a job's operations is due again. A job may have tens of thousands, and a
// look takes about 0.1 µs for each: so the more there are, the rarer are the looks, and they take a
// hundredth of the loop's time at most. Few operations are looked at each time.
class LookPace {
 public:
  static constexpr size_t kFew = 1024;
  static constexpr uint64_t kPauseNs = 20'000;  // for each operation

  bool is_due(uint64_t now_ns, size_t operations) {
    if (operations <= kFew) return true;
    if (now_ns < next_ns_) return false;
    next_ns_ = now_ns + operations * kPauseNs;
    return true;
  }

 private:
  uint64_t next_ns_ = 0;
};

}  // namespace braid
