// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>

#include "base/log.h"
#include "base/peer.h"
#include "proto/control_generated.h"

namespace braid {

// Messages that were dropped because their sender may not send them: a verdict that is not from the
// job's coordinator, a report from a node that is not in the job. All are counted; of each node the
// first one is logged. Control loop only.
class RefusedSenders {
 public:
  // `job`: the one it is about.
  void refuse(const Peer& from, proto::ControlBody message, const JobLabel& job);
  uint64_t count() const { return count_; }

 private:
  static constexpr size_t kNodesMax = 1024;

  uint64_t count_ = 0;
  std::set<NodeId> logged_;
};

}  // namespace braid
