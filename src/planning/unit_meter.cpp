// SPDX-License-Identifier: Apache-2.0
#include "planning/unit_meter.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace braid {

void UnitMeter::on_go(const OperationKey& key, uint64_t now_ns, uint64_t carried) {
  const auto running = running_.find(key);
  if (running == running_.end() || running->second.since_ns != 0) return;
  running->second.since_ns = now_ns;
  running->second.carried = so_far(carried);
}

void UnitMeter::on_done(const OperationKey& key, uint64_t now_ns, uint64_t carried) {
  const auto running = running_.extract(key);
  if (running.empty()) return;
  const Unit unit = running.mapped();
  reduced_ += unit.bytes;
  if (unit.since_ns == 0 || unit.bytes == 0 || unit.since_ns == now_ns) return;
  const Sample sample{mix64(key.tensor ^ mix64(key.step)),
                      std::max(unit.bytes, so_far(carried) - unit.carried), now_ns - unit.since_ns};
  if (samples_.size() < kSamplesKept) {
    samples_.push_back(sample);
    return;
  }
  samples_[next_] = sample;
  next_ = (next_ + 1) % kSamplesKept;
}

std::vector<UnitMeter::Sample> UnitMeter::take() {
  next_ = 0;
  return std::exchange(samples_, {});
}

}  // namespace braid
