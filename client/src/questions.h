// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace braid::client {

// What braid.h asks a daemon without a job, each over a connection of its own.

// braid_master: the daemon says it when it is greeted.
Status find_master(const char* socket_path, uint32_t timeout_ms, char* address, size_t bytes,
                   uint64_t* node);
// braid_name_job.
Status name_job(const char* socket_path, const char* wanted, uint32_t timeout_ms, char* name,
                size_t bytes);
// braid_explain.
Status explain(const char* socket_path, const char* job_name, uint32_t timeout_ms, char* text,
               size_t bytes);

}  // namespace braid::client
