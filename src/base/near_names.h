// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

// How many letters must be changed, added or dropped to make one from the other.
size_t edit_distance(std::string_view a, std::string_view b);

// The name that somebody meant who wrote `written`; empty if none is near. The first of several.
std::optional<std::string> nearest_name(std::string_view written,
                                        const std::vector<std::string>& names);

}  // namespace braid
