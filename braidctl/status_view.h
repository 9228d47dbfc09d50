// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/printable.h"
#include "metrics/status.h"

namespace braid {

// What `braidctl status` prints for people.
std::string render_status(const DaemonStatus& status);

// "\n2 jobs of other users are not shown\n", and the same within a sentence; empty: there are none.
std::string hidden_line(uint32_t jobs);
std::string hidden_note(uint32_t jobs);

// "0-3, 7"; the ranks are sorted first.
std::string format_ranks(std::vector<uint32_t> ranks);

}  // namespace braid
