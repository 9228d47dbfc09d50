// SPDX-License-Identifier: Apache-2.0
#include "base/amount.h"

#include <array>
#include <cstddef>

#include <fmt/format.h>

namespace braid {

std::string format_amount(double bytes) {
  constexpr std::array<const char*, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string format_amount(uint64_t bytes) { return format_amount(static_cast<double>(bytes)); }

}  // namespace braid
