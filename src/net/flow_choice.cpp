// SPDX-License-Identifier: Apache-2.0
#include "net/flow_choice.h"

#include <algorithm>
#include <array>

#include "net/flow_messages.h"

namespace braid {
namespace {

constexpr double kClearRatio = 1.6;
constexpr double kFasterAtMost = 2.5;  // who is believed to be faster must not end up with all

}  // namespace

double median_rate(std::span<const FlowLoad> flows) {
  std::array<double, kFlowsPerLinkMax> rates;
  size_t known = 0;
  for (const FlowLoad& flow : flows) {
    if (flow.is_open && flow.bytes_per_second > 0) rates[known++] = flow.bytes_per_second;
  }
  if (known == 0) return 0;
  const auto median = rates.begin() + static_cast<ptrdiff_t>(known / 2);
  std::nth_element(rates.begin(), median, rates.begin() + static_cast<ptrdiff_t>(known));
  return *median;
}

void even_out(std::span<FlowLoad> flows) {
  const double median = median_rate(flows);
  const double usual = median > 0 ? median : 1;
  for (FlowLoad& flow : flows) {
    const double rate = flow.bytes_per_second;
    const bool is_clear = rate > usual * kClearRatio || rate * kClearRatio < usual;
    flow.bytes_per_second = rate <= 0 || !is_clear ? usual : std::min(rate, usual * kFasterAtMost);
  }
}

size_t choose_flow(std::span<const FlowLoad> flows, uint64_t chunk_bytes, uint64_t queued_bytes,
                   size_t first) {
  size_t best = kNoFlow;
  double best_seconds = std::numeric_limits<double>::infinity();
  double full_seconds = best_seconds;  // on the best flow that has no room
  double rates = 0;
  uint64_t unacknowledged = 0;
  for (size_t i = 0; i < flows.size(); ++i) {
    const size_t at = first + i < flows.size() ? first + i : first + i - flows.size();
    const FlowLoad& flow = flows[at];
    if (!flow.is_open) continue;
    rates += flow.bytes_per_second;
    unacknowledged += flow.unacknowledged_bytes;
    const double seconds =
        static_cast<double>(flow.unacknowledged_bytes + chunk_bytes) / flow.bytes_per_second;
    if (!flow.has_room) {
      full_seconds = std::min(full_seconds, seconds);
    } else if (seconds < best_seconds) {
      best = at;
      best_seconds = seconds;
    }
  }
  if (best == kNoFlow || best_seconds <= full_seconds) return best;
  const uint64_t others = unacknowledged - flows[best].unacknowledged_bytes;
  const double rate_of_others = rates - flows[best].bytes_per_second;
  const double seconds_of_others = static_cast<double>(others + queued_bytes) / rate_of_others;
  return best_seconds <= seconds_of_others ? best : kNoFlow;
}

}  // namespace braid
