// SPDX-License-Identifier: Apache-2.0
#include "braidctl/text_table.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace braid {

std::string render_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string format_seconds(double seconds) {
  const double amount = std::abs(seconds);
  if (amount < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (amount < 1) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.3f} s", seconds);
}

}  // namespace braid
