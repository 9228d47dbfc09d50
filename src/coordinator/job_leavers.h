// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "control/control_plane.h"
#include "messages/control_messages.h"
#include "messages/rank_message.h"

namespace braid {

// The ranks that have left one job. Nodes whose ranks wait for messages are told of the ranks of
// other nodes: a message that such a rank has not sent yet will not come. Control loop only.
class JobLeavers {
 public:
  // Does nothing if the rank is known to have left.
  void add(const LeftRank& left) { left_.try_emplace(left.rank, left); }
  size_t count() const { return left_.size(); }
  bool contains(uint32_t rank) const { return left_.contains(rank); }

  // Tells the node of all that have left. `node` outlives this object.
  void add_listener(ControlPlane& control_plane, uint64_t job_key, const MemberNode& node);
  // Tells all of these nodes.
  void tell_of(ControlPlane& control_plane, uint64_t job_key, uint32_t rank) const;

 private:
  std::map<uint32_t, LeftRank> left_;  // by rank
  std::vector<const MemberNode*> listeners_;
};

}  // namespace braid
