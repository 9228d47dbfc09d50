// SPDX-License-Identifier: Apache-2.0
#include "base/polling.h"

#include <algorithm>

namespace braid {
namespace {

constexpr uint32_t kMissesMax = 2;

}  // namespace

const char* to_string(PollingMode mode) {
  switch (mode) {
    case PollingMode::Off:
      return "off";
    case PollingMode::Adaptive:
      return "adaptive";
    case PollingMode::Always:
      return "always";
  }
  return "?";
}

std::optional<PollingMode> parse_polling_mode(std::string_view text) {
  for (const PollingMode mode : kPollingModes) {
    if (text == to_string(mode)) return mode;
  }
  return std::nullopt;
}

uint64_t PollingPolicy::window_ns(uint64_t now_ns) const {
  switch (mode_) {
    case PollingMode::Off:
      return 0;
    case PollingMode::Adaptive:
      return now_ns < paused_until_ns_ ? 0 : kWindowNs;
    case PollingMode::Always:
      return kAlwaysWindowNs;
  }
  return 0;
}

void PollingPolicy::on_end(PollOutcome outcome, uint64_t now_ns) {
  switch (outcome) {
    case PollOutcome::Came:
      misses_ = 0;
      pause_ns_ = 0;
      return;
    case PollOutcome::NotCame:
      if (++misses_ >= kMissesMax) pause(now_ns, kPauseNsMin, kPauseNsMax);
      return;
    case PollOutcome::Displaced:
      return pause(now_ns, kDisplacedPauseNsMin, kDisplacedPauseNsMax);
  }
}

void PollingPolicy::pause(uint64_t now_ns, uint64_t min_ns, uint64_t max_ns) {
  pause_ns_ = std::min(std::max(2 * pause_ns_, min_ns), max_ns);
  paused_until_ns_ = now_ns + pause_ns_;
}

}  // namespace braid
