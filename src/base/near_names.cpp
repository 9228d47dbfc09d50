// SPDX-License-Identifier: Apache-2.0
#include "base/near_names.h"

#include <algorithm>
#include <numeric>

namespace braid {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest_name(std::string_view written,
                                        const std::vector<std::string>& names) {
  const std::string* nearest = nullptr;
  size_t nearest_distance = std::max<size_t>(1, written.size() / 3) + 1;
  for (const std::string& name : names) {
    const size_t distance = edit_distance(written, name);
    if (distance >= nearest_distance) continue;
    nearest = &name;
    nearest_distance = distance;
  }
  return nearest == nullptr ? std::nullopt : std::optional(*nearest);
}

}  // namespace braid
