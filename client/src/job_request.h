// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <braid.h>

#include "base/status.h"
#include "operation.h"

namespace braid::client {

// What braid_job_options and the environment ask for, checked and with defaults.
struct JobRequest {
  std::string name;
  Rank rank;
  std::string socket_path;
  std::string master_address;
  uint64_t master_node = 0;
  std::string token;  // empty: none
  uint32_t weight = 1;
  uint32_t timeout_ms = 0;
  uint64_t arena_bytes = 0;
};

Status read_job_request(const braid_job_options* options, JobRequest& request);

}  // namespace braid::client
