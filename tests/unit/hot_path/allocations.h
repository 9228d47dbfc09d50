// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid::testing {

// Calls of operator new in this process so far. For programs that run one thread.
uint64_t allocations();

}  // namespace braid::testing
