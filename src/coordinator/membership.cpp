// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "coordinator/coordinator.h"
#include "coordinator/racks.h"
#include "proto/chunk.h"

namespace braid {

namespace {

static_assert(Coordinator::kWorldSizeMax - 1 <=
                  std::numeric_limits<decltype(proto::ChunkHeader::segment)>::max(),
              "a chunk's header has room for every place in a ring");

// The places that a node has to do with, as a list of nodes: from its successor on.
class Neighbours {
 public:
  explicit Neighbours(const Membership& membership)
      : membership_(membership), is_one_(membership.nodes.size(), false) {}

  void add(uint32_t place) { is_one_[place] = true; }
  void add_targets() {
    const Ring& ring = *membership_.ring;
    if (ring.direct_bytes != 0 || membership_.is_meshed) is_one_.assign(is_one_.size(), true);
    add((ring.self + 1) % ring.nodes);
    add_all(&Route::targets);
    for (const uint32_t place : membership_.messages_to) add(place);
  }
  void add_sources() {
    const Ring& ring = *membership_.ring;
    add((ring.self + ring.nodes - 1) % ring.nodes);
    add_all(&Route::sources);
  }
  std::vector<const MemberNode*> list() const {
    std::vector<const MemberNode*> found;
    for (size_t distance = 1; distance < is_one_.size(); ++distance) {
      const size_t place = (membership_.ring->self + distance) % is_one_.size();
      if (is_one_[place]) found.push_back(&membership_.nodes[place]);
    }
    return found;
  }

 private:
  void add_all(std::vector<uint32_t> Route::*places) {
    for (const auto& route :
         {membership_.ring->two_hops, membership_.ring->halving, membership_.ring->hierarchical}) {
      if (route == nullptr) continue;
      for (const uint32_t place : (*route).*places) add(place);
    }
  }

  const Membership& membership_;
  std::vector<bool> is_one_;
};

// Who is in the ring, and which ranks each has: every rank once, each node once.
Status add_members(const proto::JobStart& start, NodeId self, Membership& membership, Ring& ring) {
  constexpr uint32_t kUnassigned = UINT32_MAX;
  ring.block_of_rank.assign(ring.world_size, kUnassigned);
  bool is_member = false;
  uint32_t blocks = 0;
  std::unordered_set<NodeId> seen;
  for (const proto::MemberNode* member : *start.nodes()) {
    MemberNode node;
    node.peer = {member->node_id(), member->name()->str(), member->address()->str(),
                 member->port()};
    node.ranks.assign(member->ranks()->begin(), member->ranks()->end());
    if (member->rack() != nullptr) node.rack = member->rack()->str();
    for (const uint32_t rank : node.ranks) {
      if (rank >= ring.world_size || ring.block_of_rank[rank] != kUnassigned) {
        return make_status(
            StatusCode::Protocol,
            "job '{}': the coordinator gave rank {} of {} to node '{}', which cannot be",
            membership.name, rank, ring.world_size, node.peer.name);
      }
      ring.block_of_rank[rank] = blocks++;
    }
    if (node.ranks.empty()) {
      return make_status(StatusCode::Protocol, "job '{}': node '{}' has no rank", membership.name,
                         node.peer.name);
    }
    if (!seen.insert(node.peer.id).second ||
        !std::is_sorted(node.ranks.begin(), node.ranks.end())) {
      return make_status(StatusCode::Protocol,
                         "job '{}': node '{}' is in the ring twice, or its ranks are out of order",
                         membership.name, node.peer.name);
    }
    if (node.peer.id == self) {
      is_member = true;
      ring.self = static_cast<uint32_t>(membership.nodes.size());
      membership.local_ranks = node.ranks;
    }
    ring.ranks_of_node.push_back(static_cast<uint32_t>(node.ranks.size()));
    ring.members.push_back(node.peer.id);
    membership.nodes.push_back(std::move(node));
  }
  if (!is_member || blocks != ring.world_size) {
    return make_status(StatusCode::Protocol,
                       "job '{}': the coordinator's list of members does not fit", membership.name);
  }
  return Status::ok();
}

// By which all-reduces go that are neither direct nor go around the ring.
Status add_routes(const proto::JobStart& start, const Membership& membership, Ring& ring) {
  ring.two_hops_bytes = start.two_hops_bytes();
  if (ring.two_hops_bytes != 0 && ring.nodes > 1)
    ring.two_hops = std::make_shared<const Route>(two_hops_route(ring.nodes, ring.self));
  ring.halving_bytes = start.halving_bytes();
  if (ring.halving_bytes != 0 && ring.nodes > 1)
    ring.halving = std::make_shared<const Route>(halving_route(ring.nodes, ring.self));
  if (!start.hierarchical()) return Status::ok();
  const auto rack_nodes = nodes_per_rack(membership.nodes);
  if (!rack_nodes) {
    return make_status(StatusCode::Protocol,
                       "job '{}': the coordinator says hierarchical, and its {} nodes are not in "
                       "racks of one size, 2 at least, one rack after the other",
                       membership.name, ring.nodes);
  }
  ring.hierarchical = std::make_shared<const Route>(
      hierarchical_route(ring.nodes / *rack_nodes, *rack_nodes, ring.self));
  return Status::ok();
}

}  // namespace

std::vector<const MemberNode*> Membership::targets() const {
  Neighbours found(*this);
  found.add_targets();
  return found.list();
}

std::vector<const MemberNode*> Membership::neighbours() const {
  Neighbours found(*this);
  found.add_targets();
  found.add_sources();
  return found.list();
}

Result<Membership> parse_job_start(const proto::JobStart& start, NodeId self, uint64_t unit_bytes) {
  Membership membership;
  membership.name = start.name()->str();
  membership.key = start.job_key();
  membership.epoch = start.epoch();
  membership.weight = start.weight();
  membership.sample_every_steps = start.sample_every_steps();
  const uint32_t world_size = start.world_size();
  if (membership.key == 0 || world_size == 0 || world_size > Coordinator::kWorldSizeMax) {
    return make_status(StatusCode::Protocol, "job '{}': world size {} makes no sense",
                       membership.name, world_size);
  }
  if (membership.weight == 0 || membership.weight > kJobWeightMax) {
    return make_status(StatusCode::Protocol,
                       "job '{}': weight {} makes no sense; right are 1 to {}", membership.name,
                       membership.weight, kJobWeightMax);
  }

  auto ring = std::make_shared<Ring>();
  ring->world_size = world_size;
  ring->unit_bytes = unit_bytes;
  ring->nodes = start.nodes()->size();
  BRAID_RETURN_IF_ERROR(add_members(start, self, membership, *ring));
  ring->routes = basic_routes(ring->nodes, ring->self);
  ring->direct_bytes = start.direct_bytes();
  BRAID_RETURN_IF_ERROR(add_routes(start, membership, *ring));
  membership.ring = std::move(ring);
  return membership;
}

}  // namespace braid
