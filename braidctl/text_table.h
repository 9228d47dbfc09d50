// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace braid {

// Columns as wide as their widest cell, two blanks apart; the first row is the heading. No row has
// more cells than the heading.
std::string render_table(const std::vector<std::vector<std::string>>& rows);

// "12.3 us", "1.234 ms", "5.678 s"
std::string format_seconds(double seconds);

}  // namespace braid
