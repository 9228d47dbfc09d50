// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace braid::client {

// braid_explain: the daemon says it, over a connection that is made for it.
Status explain(const char* socket_path, const char* job_name, uint32_t timeout_ms, char* text,
               size_t bytes);

}  // namespace braid::client
