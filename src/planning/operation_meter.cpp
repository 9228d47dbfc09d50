// SPDX-License-Identifier: Apache-2.0
#include "planning/operation_meter.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace braid {

void OperationMeter::on_go(const OperationKey& key, uint64_t now_ns, uint64_t carried) {
  const auto running = running_.find(key);
  if (running == running_.end() || running->second.since_ns != 0) return;
  running->second.since_ns = now_ns;
  running->second.carried = so_far(carried);
}

void OperationMeter::on_done(const OperationKey& key, uint64_t now_ns, uint64_t carried) {
  const auto running = running_.extract(key);
  if (running.empty()) return;
  const Running ended = running.mapped();
  reduced_ += ended.bytes;
  if (ended.since_ns == 0 || ended.bytes == 0 || ended.since_ns == now_ns) return;
  const Sample sample{mix64(key.tensor ^ mix64(key.step)),
                      std::max(ended.bytes, so_far(carried) - ended.carried),
                      now_ns - ended.since_ns};
  if (samples_.size() < kSamplesKept) {
    samples_.push_back(sample);
    return;
  }
  samples_[next_] = sample;
  next_ = (next_ + 1) % kSamplesKept;
}

std::vector<OperationMeter::Sample> OperationMeter::take() {
  next_ = 0;
  return std::exchange(samples_, {});
}

}  // namespace braid
