// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/peer.h"
#include "proto/control_generated.h"

namespace braid {

class Job;

// Whether another node tells of a message between two ranks; then `job_key` is their job's.
bool is_of_rank_message(const proto::ControlMessage& message, uint64_t& job_key);
// Takes it, of a job with that node.
void take_rank_message(Job& job, const Peer& from, const proto::ControlMessage& message);

}  // namespace braid
