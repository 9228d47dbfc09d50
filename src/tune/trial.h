// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "tune/search_space.h"

namespace braid {

enum class TrialPurpose : uint8_t {
  Baseline,  // the best so far, or the defaults, once more: how fast is the network now?
  Probe,     // something new
  Repeat,    // a probe that looked better: was it luck?
  Duel,      // defaults and winner in turns
  Check,     // does what was learned earlier still hold?
};
std::string_view purpose_name(TrialPurpose purpose);

// What was measured, for display.
struct Trial {
  Setting setting;
  TrialPurpose purpose = TrialPurpose::Baseline;
  std::string_view searcher;  // that proposed it; "knowledge"; "" where none did
  double median_seconds = 0;
  uint32_t steps = 0;  // measured ones
};

}  // namespace braid
