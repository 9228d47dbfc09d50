// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace braid {

// Text in which strangers may have had a say (names of jobs and tensors, errors), fit for one line:
// control characters and what is no UTF-8 become "\x1b", a line's end becomes "\n", as two
// characters. So nobody writes a line that looks like another one, and no terminal obeys.
std::string one_line(std::string_view text);

// At most so many bytes of it, not in the middle of a character.
std::string_view cut_text(std::string_view text, size_t bytes_max);

// "1,234,567"
std::string grouped(uint64_t number);

}  // namespace braid
