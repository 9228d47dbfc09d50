// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job_leavers.h"

#include <algorithm>

#include "coordinator/member_messages.h"

namespace braid {
namespace {

void tell_of_one(ControlPlane& control_plane, uint64_t job_key, const MemberNode& node,
                 const LeftRank& left) {
  const auto is_of_node = [&node](uint32_t rank) {
    return std::ranges::find(node.ranks, rank) != node.ranks.end();
  };
  if (!left.sent || is_of_node(left.rank)) return;
  LeftRank told{left.rank, left.reason, SentMessages()};
  for (const SentTo& one : *left.sent) {
    if (is_of_node(one.rank)) told.sent->push_back(one);
  }
  tell(control_plane, node.peer, make_rank_has_left(job_key, told));
}

}  // namespace

void JobLeavers::add_listener(ControlPlane& control_plane, uint64_t job_key,
                              const MemberNode& node) {
  if (std::ranges::find(listeners_, &node) != listeners_.end()) return;
  listeners_.push_back(&node);
  for (const auto& [rank, left] : left_) tell_of_one(control_plane, job_key, node, left);
}

void JobLeavers::tell_of(ControlPlane& control_plane, uint64_t job_key, uint32_t rank) const {
  for (const MemberNode* const node : listeners_)
    tell_of_one(control_plane, job_key, *node, left_.at(rank));
}

}  // namespace braid
