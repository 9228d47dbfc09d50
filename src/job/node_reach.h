// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/lifetime.h"
#include "control/control_plane.h"
#include "coordinator/membership.h"
#include "net/transport.h"

namespace braid {

// Brings a job's node into contact with the other nodes it works with: first control connections to
// its neighbours, then links to the nodes that it sends data to. Control loop only.
class NodeReach {
 public:
  static constexpr uint32_t kAgainMax = 2;  // connections that break while the job forms

  // `reached` comes once for each begin() that is not followed by another one: all nodes are
  // reached, or why one is not. The others outlive this object.
  NodeReach(ControlPlane& control_plane, Transport& transport, Membership& membership,
            std::function<void(const Status&)> reached)
      : control_plane_(control_plane),
        transport_(transport),
        membership_(membership),
        reached_(std::move(reached)) {}

  void begin();
  // Links to nodes that no all-reduce sends to are opened for the first operation that needs them:
  // in large jobs most would never be used. True: all are open already; else `reached` comes again.
  bool reach_all();
  // The same for the node at this place of the ring alone.
  bool reach(uint32_t place);
  // A connection to this node broke and the job does not run yet. True: it is tried again.
  bool begin_again();
  bool awaits(NodeId node) const;
  void stop() { lifetime_.end(); }  // `reached` comes no more

 private:
  void on_connected(const MemberNode& node, const Result<Peer>& peer);
  void open_links();

  ControlPlane& control_plane_;
  Transport& transport_;
  Membership& membership_;
  const std::function<void(const Status&)> reached_;
  uint32_t attempt_ = 0;           // answers to an earlier one are late
  std::vector<NodeId> unreached_;  // neighbours that the control plane has not answered for yet
  size_t links_pending_ = 0;
  std::vector<bool> is_reached_;  // by place: reach() has said so
  Lifetime lifetime_;
};

}  // namespace braid
