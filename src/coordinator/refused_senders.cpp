// SPDX-License-Identifier: Apache-2.0
#include "coordinator/refused_senders.h"

#include "base/log.h"

namespace braid {

void RefusedSenders::refuse(const Peer& from, proto::ControlBody message, const JobLabel& job) {
  ++count_;
  if (logged_.size() >= kNodesMax || !logged_.insert(from.id).second) return;
  BRAID_LOG_WARN(LogFields{.job = job, .peer = from.name},
                 "node '{}' ({}) sent {} about job '{}', which it may not send: dropped, and so "
                 "will be all others like it",
                 from.name, from.address, proto::EnumNameControlBody(message), job.name);
}

}  // namespace braid
