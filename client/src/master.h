// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace braid::client {

// braid_master: the daemon says it when it is greeted, over a connection that is made for it.
Status find_master(const char* socket_path, uint32_t timeout_ms, char* address, size_t bytes,
                   uint64_t* node);

}  // namespace braid::client
