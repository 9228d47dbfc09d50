// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace braid::client {

// How long the operations of one job may take. An extension is for those that are submitted until
// the first one of them has ended. Not thread-safe.
class Timeouts {
 public:
  explicit Timeouts(uint32_t opened_ms) : opened_ms_(opened_ms), usual_ms_(opened_ms) {}

  // 0: as the job was opened.
  void set_usual_ms(uint32_t timeout_ms) { usual_ms_ = timeout_ms != 0 ? timeout_ms : opened_ms_; }
  uint32_t usual_ms() const { return usual_ms_; }

  void extend_ms(uint32_t more_ms) { extension_ms_ = sum_ms(extension_ms_, more_ms); }
  uint32_t extension_ms() const { return extension_ms_; }
  // An operation has ended that had got so much.
  void take_back_ms(uint32_t extension_ms) {
    extension_ms_ -= std::min(extension_ms_, extension_ms);
  }

  // `timeout_ms` is the operation's own; 0: it has none.
  uint32_t of_operation_ms(uint32_t timeout_ms) const {
    return sum_ms(timeout_ms != 0 ? timeout_ms : usual_ms_, extension_ms_);
  }

 private:
  // The largest number where the sum is larger.
  static uint32_t sum_ms(uint32_t a, uint32_t b) {
    return a + std::min(b, std::numeric_limits<uint32_t>::max() - a);
  }

  const uint32_t opened_ms_;
  uint32_t usual_ms_;
  uint32_t extension_ms_ = 0;
};

}  // namespace braid::client
