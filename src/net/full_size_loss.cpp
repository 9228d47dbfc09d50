// SPDX-License-Identifier: Apache-2.0
#include "net/full_size_loss.h"

#include <algorithm>
#include <utility>

namespace braid {

void FullSizeLoss::on_acknowledged(uint32_t bytes) {
  if (bytes < stuck_bytes_ || stuck_bytes_ == 0) return;
  stuck_bytes_ = 0;
  has_opened_since_ = false;
  is_hopeless_ = false;
}

bool FullSizeLoss::on_given_up(uint32_t bytes) {
  if (bytes <= kSmallBytes) return false;
  const bool is_again = std::exchange(has_opened_since_, false);
  stuck_bytes_ = stuck_bytes_ == 0 ? bytes : std::min(stuck_bytes_, bytes);
  if (!is_again || is_hopeless_) return false;
  if (segment_bytes_ == kSegmentBytesLeast)
    is_hopeless_ = true;
  else
    segment_bytes_ = segment_bytes_ == 0 ? kSegmentBytes : kSegmentBytesLeast;
  return true;
}

}  // namespace braid
