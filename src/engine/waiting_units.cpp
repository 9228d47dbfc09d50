// SPDX-License-Identifier: Apache-2.0
#include "engine/waiting_units.h"

#include <algorithm>

namespace braid {

std::optional<WaitingUnits::Unit> WaitingUnits::take() {
  if (!operations_.empty() && is_over(operations_.front())) overtaken_ = 0;
  std::erase_if(operations_, is_over);
  if (operations_.empty()) return std::nullopt;
  const size_t at = next();
  overtaken_ = at == 0 ? 0 : overtaken_ + 1;
  Unit& operation = operations_[at];
  return Unit{operation.run, operation.index++};
}

// Whether none of its units waits any more; finds the first that does.
bool WaitingUnits::is_over(Unit& operation) {
  const std::vector<UnitRun>& units = operation.run->units();
  while (operation.index < units.size() && units[operation.index].has_begun()) ++operation.index;
  return operation.index == units.size();
}

size_t WaitingUnits::next() const {
  if (overtaken_ >= kOvertakenMax) return 0;
  const auto most_urgent = std::max_element(
      operations_.begin(), operations_.end(),
      [](const Unit& a, const Unit& b) { return a.run->urgency() < b.run->urgency(); });
  return static_cast<size_t>(most_urgent - operations_.begin());
}

}  // namespace braid
