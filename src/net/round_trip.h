// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

// How long a flow takes from giving a chunk to UCX until its acknowledgement: mean and variation as
// TCP keeps them (RFC 6298, section 2). What waits in the flow's window counts. Not thread-safe.
class RoundTrip {
 public:
  bool is_known() const { return is_known_; }
  uint64_t mean_ns() const { return mean_ns_; }
  // Few take longer.
  uint64_t usual_most_ns() const { return mean_ns_ + 4 * variation_ns_; }

  void add(uint64_t sample_ns) {
    if (!is_known_) {
      is_known_ = true;
      mean_ns_ = sample_ns;
      variation_ns_ = sample_ns / 2;
      return;
    }
    const uint64_t difference = mean_ns_ > sample_ns ? mean_ns_ - sample_ns : sample_ns - mean_ns_;
    variation_ns_ = (3 * variation_ns_ + difference) / 4;
    mean_ns_ = (7 * mean_ns_ + sample_ns) / 8;
  }

 private:
  bool is_known_ = false;
  uint64_t mean_ns_ = 0;
  uint64_t variation_ns_ = 0;
};

}  // namespace braid
