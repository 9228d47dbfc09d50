// SPDX-License-Identifier: Apache-2.0
#include "job/unit_meter.h"

#include <utility>

namespace braid {

void UnitMeter::advance(uint64_t now_ns) {
  area_ += static_cast<double>(in_flight_) * static_cast<double>(now_ns - now_ns_);
  now_ns_ = now_ns;
}

void UnitMeter::on_go(const OperationKey& key, uint64_t now_ns) {
  const auto running = running_.find(key);
  if (running == running_.end() || running->second.since_ns != 0) return;
  advance(now_ns);
  running->second.since_ns = now_ns;
  running->second.area = area_;
  ++in_flight_;
}

void UnitMeter::on_done(const OperationKey& key, uint64_t now_ns) {
  const auto running = running_.extract(key);
  if (running.empty() || running.mapped().since_ns == 0) return;
  advance(now_ns);
  --in_flight_;
  const Running& one = running.mapped();
  const uint64_t nanoseconds = now_ns - one.since_ns;
  if (one.bytes == 0 || nanoseconds == 0) return;
  const Sample sample{one.bytes, nanoseconds,
                      (area_ - one.area) / static_cast<double>(nanoseconds)};
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
