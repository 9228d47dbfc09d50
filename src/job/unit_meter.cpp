// SPDX-License-Identifier: Apache-2.0
#include "job/unit_meter.h"

#include <utility>

namespace braid {

void UnitMeter::advance(uint64_t now_ns) {
  area_ += static_cast<double>(running_.size()) * static_cast<double>(now_ns - now_ns_);
  now_ns_ = now_ns;
}

void UnitMeter::on_go(const OperationKey& key, uint64_t bytes, uint64_t now_ns) {
  advance(now_ns);
  running_.try_emplace(key, Running{bytes, now_ns, area_});
}

void UnitMeter::on_done(const OperationKey& key, uint64_t now_ns) {
  advance(now_ns);
  const auto running = running_.extract(key);
  if (running.empty()) return;
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
