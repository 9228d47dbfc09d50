// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/operation.h"
#include "messages/job_hash.h"

namespace braid {

// A job as the operations of one node see it.
struct JobOnNode {
  std::string name;
  uint64_t key = 0;
  std::shared_ptr<const Ring> ring;
  std::vector<uint32_t> local_ranks;  // ascending
  JobHash hash = JobHash(key);
};

}  // namespace braid
