// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

// What becomes of a decoded element. Store: memory = value. Add: memory += value. Error:
// memory −= value, and 0 where that is not finite; so an error memory never holds NaN or infinity.
enum class Into : uint8_t { Store, Add, Error };

}  // namespace braid
