// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "base/status.h"
#include "operation.h"
#include "rank_blocks.h"
#include "registry.h"

namespace braid::client {

// Puts what the daemon reads for a request where the daemon finds it: the input stays where it is
// if it lies in an arena, else it is copied into one. The table is always copied, so that nobody
// changes it. `lock` is released while this copies, for that may take milliseconds; `input.copy` is
// to be released also after an error.
Status stage_input(const Request& request, Registry& registry, const RankBlocks& blocks,
                   std::unique_lock<std::mutex>& lock, StagedInput& input);

}  // namespace braid::client
