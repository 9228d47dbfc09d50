// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "loop/timer.h"
#include "net/io_messages.h"
#include "net/io_transport.h"
#include "net/transport.h"

namespace braid {

// The links from this node to others, as the control loop knows them: which are being opened, which
// are open, and who waits for them. Tells the I/O loops to open and close their part. Control loop
// only; a part of its transport.
//
//  (none) ──open──► opening ──every loop has a flow──► open
//     ▲                │ a loop has none, deadline,       │ a loop has lost its last flow,
//     │                │ peer lost                        │ peer lost, idle
//     └────────────────┴──────────────────────────────────┘
class NodeLinks {
 public:
  // All that is passed by reference outlives this; all loops are there before the first link.
  NodeLinks(Loop& control_loop, const TransportOptions& options, const ControlPlane& control_plane,
            const std::vector<std::unique_ptr<IoTransport>>& io_transports);

  // See Transport::open_link().
  void open(const Peer& peer, Transport::OpenCallback callback);
  void add_flows(NodeId peer, uint32_t flows);
  bool close_idle(const std::unordered_set<NodeId>& used, uint64_t idle_ms);
  // Ends an attempt or a link: tells who waits, closes what there is of it on all loops.
  void drop(NodeId peer, const Status& reason);
  void drop_all(const Status& reason);

  // Where the link with that nonce leads; nullptr: it is no more.
  const Peer* find(NodeId peer, uint64_t nonce) const;
  // Returns where the link leads if it is open now, and was not before.
  const Peer* on_tried(const LinkTried& report);

 private:
  struct OpeningOrOpen {
    Peer peer;
    uint64_t nonce = 0;
    bool is_open = false;
    uint32_t flows = 0;  // on each loop
    uint64_t last_used_ms = 0;
    std::vector<Transport::OpenCallback> waiting;
    std::vector<bool> loop_is_up;
    std::unique_ptr<Timer> deadline;
  };

  void finish_waiting(OpeningOrOpen& link, const Status& status);
  template <typename Command>
  void tell_loops(const Command& command) {
    for (const auto& io : io_transports_) io->commands().send_unbounded(Command(command));
  }

  Loop& control_loop_;
  const TransportOptions& options_;
  const ControlPlane& control_plane_;
  const std::vector<std::unique_ptr<IoTransport>>& io_transports_;
  std::unordered_map<NodeId, OpeningOrOpen> links_;
};

}  // namespace braid
