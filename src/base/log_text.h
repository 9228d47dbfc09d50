// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace braid {

// At most so many bytes of it, not in the middle of a character.
std::string_view cut_text(std::string_view text, size_t bytes_max);

// "1,234,567"
std::string grouped(uint64_t number);

}  // namespace braid
