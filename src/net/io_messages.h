// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/peer.h"
#include "control/flow_keys.h"
#include "net/transport.h"

namespace braid {

// One side's half of a flow, as it crosses between nodes and loops. (io_loop, flow, generation) are
// the sender's of data on both sides.
struct FlowOffer {
  uint16_t io_loop = 0;
  uint16_t flow = 0;
  uint32_t generation = 0;  // names one attempt to open it; never 0
  std::string rail;
  std::vector<uint8_t> address;  // FlowChannel::address()
};

struct FlowRefusal {
  uint16_t io_loop = 0;
  uint16_t flow = 0;
  uint32_t generation = 0;
  std::string reason;
};

// --- from the control loop to an I/O loop ---
struct OpenLink {
  Peer peer;
  uint64_t nonce;
  LinkKey key;
};
// The link gets new flows until it has so many.
struct AddFlows {
  NodeId peer;
  uint64_t nonce;
  uint32_t flows;
};
// Are the link's flows well?
struct ProveFlows {
  NodeId peer;
  uint64_t nonce;
};
struct CloseLink {
  NodeId peer;
  uint64_t nonce;
  Status reason;
};
struct ConnectFlow {
  NodeId peer;
  FlowOffer accepted;
};  // the other side has accepted
struct RefuseFlow {
  NodeId peer;
  FlowRefusal refusal;
};  // the other side has not
struct AcceptFlow {
  Peer peer;
  FlowKeys keys;
  FlowOffer offer;
};  // another node opens a flow to us
struct ClosePeer {
  NodeId peer;
  Status reason;
};
// A network device has come, or gone.
struct RailChanged {
  size_t rail;  // its place in TransportOptions::rails
  bool is_up;
};
struct ListFlows {
  uint64_t query;
};
struct CloseAll {};
using IoCommand = std::variant<OpenLink, AddFlows, ProveFlows, CloseLink, ConnectFlow, RefuseFlow,
                               AcceptFlow, ClosePeer, RailChanged, ListFlows, CloseAll>;

// --- from an I/O loop to the control loop ---
struct FlowsOffered {
  NodeId peer;
  uint64_t nonce;
  std::vector<FlowOffer> offers;
};
struct FlowAccepted {
  NodeId peer;
  FlowOffer offer;
};
struct FlowRefused {
  NodeId peer;
  FlowRefusal refusal;
};
// Every flow of a new link has been tried once on this loop.
struct LinkTried {
  NodeId peer;
  uint64_t nonce;
  uint16_t io_loop;
  size_t flows_open;
  Status error;
};
struct LinkLost {
  NodeId peer;
  uint64_t nonce;
  Status reason;
};
struct FlowsListed {
  uint64_t query;
  std::vector<FlowStatus> flows;
};
struct AllClosed {};
using IoReport = std::variant<FlowsOffered, FlowAccepted, FlowRefused, LinkTried, LinkLost,
                              FlowsListed, AllClosed>;

}  // namespace braid
