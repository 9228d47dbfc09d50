// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid::proto {

// Client ↔ daemon: the socket's messages, the rings and the memory. Raised when an old peer would
// misread a new one.
inline constexpr uint32_t kClientProtocolVersion = 8;
// Daemon ↔ daemon: the control connection and the chunks.
inline constexpr uint32_t kControlProtocolVersion = 19;

}  // namespace braid::proto
