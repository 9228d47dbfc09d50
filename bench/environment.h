// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace braid::bench {

// Who this trainer is: RANK and WORLD_SIZE, else what Open MPI or MPICH says of them; MASTER_ADDR,
// BRAID_JOB. With none of them it is a job of one.
struct Environment {
  uint32_t rank = 0;
  uint32_t world_size = 1;
  std::string master_address = "127.0.0.1";
  std::string job_name = "braid-bench";
};

Result<Environment> read_environment();

}  // namespace braid::bench
