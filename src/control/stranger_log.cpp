// SPDX-License-Identifier: Apache-2.0
#include "control/stranger_log.h"

#include <algorithm>

#include "base/log.h"

namespace braid {

bool StrangerLog::refused(const std::string& who, const std::string& reason) {
  refill();
  if (lines_left_ == 0) {
    ++unwritten_;
    return false;
  }
  --lines_left_;
  const std::string others =
      unwritten_ == 0 ? ""
                      : fmt::format(" ({} more were refused since the last such line)", unwritten_);
  BRAID_LOG_WARN("control plane: refused the connection from {}: {}{}", who, reason, others);
  unwritten_ = 0;
  return true;
}

void StrangerLog::refill() {
  const uint64_t now_ms = clock_.now_ms();
  const uint64_t due = (now_ms - refilled_at_ms_) / kMsPerLine;
  if (due == 0) return;
  lines_left_ = static_cast<uint32_t>(std::min<uint64_t>(kLinesAtOnce, lines_left_ + due));
  refilled_at_ms_ = now_ms;
}

}  // namespace braid
