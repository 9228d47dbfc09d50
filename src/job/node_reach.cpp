// SPDX-License-Identifier: Apache-2.0
#include "job/node_reach.h"

#include <algorithm>

#include "base/local_host.h"
#include "base/log.h"

namespace braid {
namespace {

// `found` is at the address where `sought` should be.
Status why_another(const Peer& self, const Peer& found, const Peer& sought) {
  if (found.id != self.id) {
    return make_status(StatusCode::Unavailable, "node '{}' was restarted meanwhile", sought.name);
  }
  const std::string interface = own_interface_of(sought.address);
  return make_status(StatusCode::Unavailable,
                     "node '{}' says that it is at {}, but that is also an address of this "
                     "node{}: set node.address and transport.rails of both nodes to a network that "
                     "they share; this node has {}",
                     sought.name, sought.address,
                     interface.empty() ? "" : ", on its interface " + interface, own_interfaces());
}

}  // namespace

void NodeReach::begin() {
  const std::vector<const MemberNode*> neighbours = membership_.neighbours();
  unreached_.clear();
  for (const MemberNode* node : neighbours) unreached_.push_back(node->peer.id);
  for (const MemberNode* node : neighbours) {
    control_plane_.connect(
        node->peer.address, node->peer.port,
        lifetime_.guard([this, node, attempt = attempt_](const Result<Peer>& peer) {
          if (attempt == attempt_) on_connected(*node, peer);
        }));
  }
}

void NodeReach::on_connected(const MemberNode& node, const Result<Peer>& peer) {
  std::erase(unreached_, node.peer.id);
  Status connected = peer.status();
  if (connected && peer->id != node.peer.id)
    connected = why_another(control_plane_.self(), *peer, node.peer);
  if (!connected) {
    return reached_(connected.with_context(fmt::format("node '{}'", control_plane_.self().name)));
  }
  if (unreached_.empty()) open_links();
}

void NodeReach::open_links() {
  const std::vector<const MemberNode*> targets = membership_.targets();
  links_pending_ = targets.size();
  for (const MemberNode* node : targets) {
    transport_.open_link(node->peer.id,
                         lifetime_.guard([this, attempt = attempt_](const Status& opened) {
                           if (attempt != attempt_) return;
                           if (!opened) return reached_(opened);
                           if (--links_pending_ == 0) reached_(Status::ok());
                         }));
  }
}

bool NodeReach::reach_all() {
  if (!membership_.is_meshed) {
    const bool is_meshed_already = membership_.targets().size() + 1 == membership_.nodes.size();
    membership_.is_meshed = true;
    if (!is_meshed_already) {
      ++attempt_;
      begin();
    }
  }
  return unreached_.empty() && links_pending_ == 0;
}

bool NodeReach::reach(uint32_t place) {
  if (is_reached_.empty()) is_reached_.resize(membership_.nodes.size());
  if (is_reached_[place]) return true;
  const auto targets = membership_.targets();
  if (std::ranges::find(targets, &membership_.nodes[place]) == targets.end()) {
    membership_.messages_to.push_back(place);
    ++attempt_;
    begin();
  }
  is_reached_[place] = unreached_.empty() && links_pending_ == 0;
  return is_reached_[place];
}

bool NodeReach::begin_again() {
  if (attempt_ >= kAgainMax) return false;
  ++attempt_;
  begin();
  return true;
}

bool NodeReach::awaits(NodeId node) const {
  return std::find(unreached_.begin(), unreached_.end(), node) != unreached_.end();
}

}  // namespace braid
