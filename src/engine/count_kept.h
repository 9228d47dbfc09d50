// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/status.h"

namespace braid {

// Counts the memory that an I/O loop keeps for operations of a job which this node has yet to
// submit: `bytes` from now on. An error: there is no room for more; less always goes. Empty: nobody
// counts. Called for each chunk.
using CountKept = std::function<Status(uint64_t bytes)>;

}  // namespace braid
