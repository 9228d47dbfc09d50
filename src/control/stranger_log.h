// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace braid {

// Warns of connections that were refused: a line each, but a few per second at most, so that a
// flood of them does not become a flood of the log. The next line that is written says how many
// were not. Control loop only.
class StrangerLog {
 public:
  explicit StrangerLog(const Clock& clock) : clock_(clock) {}

  // False: counted, not written.
  bool refused(const std::string& who, const std::string& reason);

 private:
  void refill();

  static constexpr uint32_t kLinesAtOnce = 10;
  static constexpr uint64_t kMsPerLine = 1000;  // beyond those

  const Clock& clock_;
  uint32_t lines_left_ = kLinesAtOnce;
  uint64_t refilled_at_ms_ = 0;
  uint64_t unwritten_ = 0;
};

}  // namespace braid
