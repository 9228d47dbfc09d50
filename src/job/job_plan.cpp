// SPDX-License-Identifier: Apache-2.0
#include "job/job_plan.h"

#include <algorithm>
#include <unordered_set>

#include "job/coordinator.h"

namespace braid {

std::vector<const MemberNode*> JobPlan::targets() const {
  if (ring->nodes == 1) return {};
  if (ring->direct_bytes == 0) return {&successor()};
  std::vector<const MemberNode*> others;
  for (size_t distance = 1; distance < nodes.size(); ++distance)
    others.push_back(&nodes[(ring->self + distance) % nodes.size()]);
  return others;
}

Result<JobPlan> parse_job_start(const proto::JobStart& start, NodeId self) {
  JobPlan plan;
  plan.name = start.name()->str();
  plan.key = start.job_key();
  plan.epoch = start.epoch();
  plan.weight = start.weight();
  const uint32_t world_size = start.world_size();
  if (plan.key == 0 || world_size == 0 || world_size > Coordinator::kWorldSizeMax) {
    return make_status(StatusCode::Protocol, "job '{}': world size {} makes no sense", plan.name,
                       world_size);
  }
  if (plan.weight == 0 || plan.weight > kJobWeightMax) {
    return make_status(StatusCode::Protocol,
                       "job '{}': weight {} makes no sense; right are 1 to {}", plan.name,
                       plan.weight, kJobWeightMax);
  }

  constexpr uint32_t kUnassigned = UINT32_MAX;
  auto ring = std::make_shared<Ring>();
  ring->world_size = world_size;
  ring->nodes = start.nodes()->size();
  ring->block_of_rank.assign(world_size, kUnassigned);
  bool is_member = false;
  uint32_t blocks = 0;
  std::unordered_set<NodeId> seen;
  for (const proto::MemberNode* member : *start.nodes()) {
    MemberNode node;
    node.peer = {member->node_id(), member->name()->str(), member->address()->str(),
                 member->port()};
    node.ranks.assign(member->ranks()->begin(), member->ranks()->end());
    for (const uint32_t rank : node.ranks) {
      if (rank >= world_size || ring->block_of_rank[rank] != kUnassigned) {
        return make_status(
            StatusCode::Protocol,
            "job '{}': the coordinator gave rank {} of {} to node '{}', which cannot be", plan.name,
            rank, world_size, node.peer.name);
      }
      ring->block_of_rank[rank] = blocks++;
    }
    if (node.ranks.empty()) {
      return make_status(StatusCode::Protocol, "job '{}': node '{}' has no rank", plan.name,
                         node.peer.name);
    }
    if (!seen.insert(node.peer.id).second ||
        !std::is_sorted(node.ranks.begin(), node.ranks.end())) {
      return make_status(StatusCode::Protocol,
                         "job '{}': node '{}' is in the ring twice, or its ranks are out of order",
                         plan.name, node.peer.name);
    }
    if (node.peer.id == self) {
      is_member = true;
      ring->self = static_cast<uint32_t>(plan.nodes.size());
      plan.local_ranks = node.ranks;
    }
    ring->ranks_of_node.push_back(static_cast<uint32_t>(node.ranks.size()));
    ring->members.push_back(node.peer.id);
    plan.nodes.push_back(std::move(node));
  }
  if (!is_member || blocks != world_size) {
    return make_status(StatusCode::Protocol,
                       "job '{}': the coordinator's list of members does not fit", plan.name);
  }
  ring->successor = plan.nodes[(ring->self + 1) % ring->nodes].peer.id;
  ring->predecessor = plan.nodes[(ring->self + ring->nodes - 1) % ring->nodes].peer.id;
  ring->direct_bytes = start.direct_bytes();
  plan.ring = std::move(ring);
  return plan;
}

}  // namespace braid
