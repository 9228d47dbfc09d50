// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace braid {

// The text forms of configuration values. Error messages say what is wrong and what would be right.

Result<uint64_t> parse_integer(std::string_view text, uint64_t min, uint64_t max);

// 131072, 128KiB, 8MiB, 64GiB, 1TiB; at most one blank before the unit.
Result<uint64_t> parse_bytes(std::string_view text, uint64_t min, uint64_t max);
// The largest unit that divides `bytes`: "8MiB", "1500".
std::string format_bytes(uint64_t bytes);

// "a, b" and "[a, b]"; blanks around elements are dropped. "" and "[]" have none.
std::vector<std::string> split_list(std::string_view text);
std::string format_list(const std::vector<std::string>& elements);

std::string_view trim(std::string_view text);

}  // namespace braid
