// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace braid {

// Text in which strangers may have had a say (names of jobs and tensors, errors, what peers and
// trainers send), fit for one line of a log or a terminal. Control characters (C0, DEL and C1),
// separators of lines, what turns the direction of writing and what is no UTF-8 become "\x1b", byte
// by byte; a line's end becomes "\n", as two characters. So nobody writes a line that looks like
// another one, and no terminal obeys. More than `bytes_max` bytes of it are cut off, and "..." says
// so.
std::string printable(std::string_view text, size_t bytes_max = std::string_view::npos);

// The same for whole lines that are made already, also of JSON: line ends and tabs stay, and the
// others become "\u001b", which within JSON is the same character. What is no UTF-8: "\ufffd".
std::string printable_lines(std::string_view text);

// The same for a label of a metric: each such character, and each byte that is no UTF-8, becomes
// '?'. Prometheus refuses a whole page that is no UTF-8.
std::string printable_label(std::string_view text);

}  // namespace braid
