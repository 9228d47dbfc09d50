// SPDX-License-Identifier: Apache-2.0
#include "job/unit_meter.h"

#include <algorithm>
#include <utility>

namespace braid {

void UnitMeter::on_go(const OperationKey& key, uint64_t now_ns) {
  const auto running = running_.find(key);
  if (running == running_.end() || running->second.since_ns != 0) return;
  running->second.since_ns = now_ns;
}

void UnitMeter::on_done(const OperationKey& key, uint64_t now_ns) {
  const auto running = running_.extract(key);
  if (running.empty() || running.mapped().since_ns == 0) return;
  Unit unit = running.mapped();
  unit.until_ns = now_ns;
  if (unit.bytes == 0 || unit.until_ns == unit.since_ns) return;
  finished_.push_back(unit);
  const Sample sample{unit.bytes, unit.until_ns - unit.since_ns,
                      carried_during(unit) / static_cast<double>(unit.bytes)};
  forget_finished();
  if (samples_.size() < kSamplesKept) {
    samples_.push_back(sample);
    return;
  }
  samples_[next_] = sample;
  next_ = (next_ + 1) % kSamplesKept;
}

double UnitMeter::carried_during(const Unit& unit) const {
  double bytes = 0;
  // Those that ended last are at the back.
  for (auto other = finished_.rbegin(); other != finished_.rend(); ++other) {
    if (other->until_ns <= unit.since_ns) break;
    const uint64_t since_ns = std::max(other->since_ns, unit.since_ns);
    bytes += static_cast<double>(other->bytes) * static_cast<double>(other->until_ns - since_ns) /
             static_cast<double>(other->until_ns - other->since_ns);
  }
  return bytes;
}

void UnitMeter::forget_finished() {
  uint64_t oldest_ns = UINT64_MAX;
  for (const auto& [key, unit] : running_) {
    if (unit.since_ns != 0) oldest_ns = std::min(oldest_ns, unit.since_ns);
  }
  while (!finished_.empty() &&
         (finished_.front().until_ns <= oldest_ns || finished_.size() > kFinishedKept))
    finished_.pop_front();
}

std::vector<UnitMeter::Sample> UnitMeter::take() {
  next_ = 0;
  return std::exchange(samples_, {});
}

}  // namespace braid
