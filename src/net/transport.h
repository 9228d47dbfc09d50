// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "control/control_plane.h"
#include "engine/link.h"
#include "timeline/loop_timeline.h"

namespace braid {

// What carries flows where TCP alone does.
enum class TcpTransport : uint8_t { Native, Ucx };

struct TransportOptions {
  std::vector<std::string> rails;  // network devices, e.g. {"eth0"}; "auto" was resolved by then
  std::vector<std::string> transports;  // {"tcp"}, or what else UCX may use (UCX_TLS)
  TcpTransport tcp = TcpTransport::Native;
  std::string node_address;     // of a rail's addresses this one is used, or one of its family
  uint16_t tcp_port = 0;        // native: of the first I/O loop, each has its own; 0: any
  bool encrypts = false;        // what flows carry; native only
  bool is_alone = false;        // there are no other nodes, so native flows are not listened for
  uint32_t flows_per_link = 8;  // per I/O loop; flow k runs on rail k mod rails
  uint32_t chunk_bytes = 128 << 10;   // the largest that may be sent or come
  uint32_t window_bytes = 512 << 10;  // a flow with as many unacknowledged takes no chunk
  uint32_t slow_flow_percent = 50;    // of its link's median rate; what stays below is opened again
  uint32_t twice_sent_percent = 2;    // of chunks: for those that are overdue; 0: none
  uint32_t open_timeout_ms = 5000;    // opening a link
  uint32_t lost_timeout_ms = 5000;    // a link without an open flow for so long is lost

  // Flows go over sockets of braid's own; else UCX carries them.
  bool is_native_tcp() const {
    return tcp == TcpTransport::Native && transports == std::vector<std::string>{"tcp"};
  }
  // Both ends of a flow must have the same.
  std::string_view transport_name() const { return is_native_tcp() ? "native" : "ucx"; }
};

// An I/O loop: its thread runs `loop`; chunks that arrive on it go to `sink`, which must outlive
// the transport.
struct IoLoop {
  Loop* loop = nullptr;
  ChunkSink* sink = nullptr;
  LoopTimeline* timeline = nullptr;  // chunks are noted there; nullptr: nowhere
};

struct FlowStatus {
  std::string peer;       // node name
  bool outgoing = false;  // we send data on it
  uint16_t io_loop = 0;
  uint16_t flow = 0;
  std::string rail;
  std::string state;  // "open", "opening", "failed"
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t failures = 0;
  std::string error;            // of the last failure, of a flow that we send on
  uint64_t round_trip_ns = 0;   // from sending a chunk to its acknowledgement; 0: not known
  double bytes_per_second = 0;  // what it delivers, of a flow that we send on; 0: not known
  // By TCP, of a native flow: without what keeps either daemon busy; 0: not known.
  uint64_t path_round_trip_ns = 0;
  uint64_t segments_resent = 0;  // since it was opened
  // How long ago it has failed last, and was opened again because it was slow; 0: never.
  uint64_t failed_ago_ns = 0;
  uint64_t replaced_ago_ns = 0;
};

struct RailStatus {
  std::string name;
  bool is_up = true;  // it is switched on and has a carrier, or is no network device
};

// All flows between this node and another one, both ways, over all I/O loops.
struct LinkStatus {
  struct Rail {
    std::string name;
    // These grow as long as the link, or a flow from the other node, is there.
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
    uint64_t chunks_returned = 0;  // not acknowledged when their flow died: they go over others
    uint64_t chunks_overdue = 0;   // not acknowledged in time, and sent over another flow, too
    uint64_t segments_resent = 0;  // by TCP; native flows that this node sends on
    // These and all below count the flows that this node sends on.
    uint64_t flow_failures = 0;
    uint64_t flow_replacements = 0;  // opened again because they were slow
    uint64_t flows_open = 0;
    uint64_t flows_opening = 0;
    uint64_t flows_failed = 0;  // they wait for their next try, or for the rail
    // As the last look found it, at most a tenth of a second ago while anything is on its way.
    uint64_t unacknowledged_bytes = 0;
    uint64_t oldest_ns = 0;           // how long ago the oldest chunk on its way was sent
    uint64_t path_round_trip_ns = 0;  // the longest of any flow, by TCP; 0: not known
    std::vector<double> flow_rates;   // bytes per second, ascending; of flows that are known to

    bool is_sent_on() const { return flows_open + flows_opening + flows_failed != 0; }
  };

  std::string peer;  // node name
  std::vector<Rail> rails;
  uint64_t queued_bytes = 0;  // chunks that wait for a flow with room, at the last look
  std::string trouble;  // why nothing of an operation reaches the node; empty: nothing is known
};

struct TransportCounters {  // sums over all flows since the start; read from any thread
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t chunks_sent = 0;
  uint64_t chunks_received = 0;
  uint64_t chunks_resent = 0;
  uint64_t chunks_sent_twice = 0;  // over another flow, since they were overdue
  uint64_t chunks_rejected = 0;    // bad header or token
  uint64_t strangers = 0;          // connections to flows' ports that were refused
  uint64_t flow_failures = 0;
  uint64_t flows_silent = 0;    // of these, given up because nothing was acknowledged any more
  uint64_t flows_replaced = 0;  // opened again because they were slow
  uint64_t flows_open = 0;      // both ways, now
  uint64_t flows_opening = 0;   // outgoing, now
  uint64_t flows_failed = 0;    // outgoing, now: they wait for their next try, or for a rail
};

// Opens flows to peers on every I/O loop, re-opens those that die (back-off), gives the loops their
// Links. Lives on the control loop, which learns the addresses of flows for it; reaches the I/O
// loops through doors. A link is opened by the node that sends data on it; acknowledgements come
// back on the same flows.
class Transport {
 public:
  using OpenCallback = std::function<void(Status)>;

  // Fails if a rail is unknown, naming the rails there are, or if none has a carrier: one
  // that has none is used when it gets it. The I/O loops must not run yet: their doors are made
  // here.
  static Result<std::unique_ptr<Transport>> create(Loop& control_loop,
                                                   const std::vector<IoLoop>& io_loops,
                                                   TransportOptions options,
                                                   ControlPlane& control_plane);
  virtual ~Transport() = default;  // after close()

  // Makes sure that a link to `peer` (connected on the control plane) is up: at least one flow open
  // on every I/O loop, all tried. `callback` comes exactly once, within open_timeout_ms, never from
  // within this call. Links are shared, and stay warm until close_idle_links().
  virtual void open_link(NodeId peer, OpenCallback callback) = 0;
  // `used`: where links lead that jobs have now. Closes the others that have not been among them,
  // nor asked for, for `idle_ms`. True while others are left.
  virtual bool close_idle_links(const std::unordered_set<NodeId>& used, uint64_t idle_ms) = 0;
  // An open link gets flows until it has so many on each I/O loop, up to kFlowsPerLinkMax; in the
  // background, while it carries chunks. Without an open link nothing happens. Flows stay as long
  // as their link; jobs use TransportOptions::flows_per_link of them unless they were given other
  // limits (Links::limit).
  virtual void add_flows(NodeId peer, uint32_t flows) = 0;
  // FlowOpen, FlowAccept, FlowRefuse from `from`. Returns false for any other message.
  virtual bool on_control_message(const Peer& from, const proto::ControlMessage& message) = 0;
  // Closes every flow to and from the peer; its links' chunks are settled as not acknowledged.
  virtual void on_peer_lost(NodeId peer) = 0;
  // The I/O loop's links; to be used on that loop only. Valid from create() on, so that engines can
  // be given it.
  virtual Links& links(size_t io_loop) = 0;

  // Called on the control loop when a link has lost its last flow and none was opened again within
  // lost_timeout_ms.
  virtual void set_link_lost_callback(std::function<void(const Peer&, const Status&)> callback) = 0;

  // Closes everything on all loops; `closed` comes on the control loop. The I/O loops must still be
  // running.
  virtual void close(std::function<void()> closed) = 0;

  virtual std::string description() const = 0;        // e.g. "TCP on eth0, 8 flows per link"
  virtual std::vector<RailStatus> rails() const = 0;  // any thread
  virtual TransportCounters counters() const = 0;
  virtual std::vector<LinkStatus> link_statuses() const = 0;  // any thread
  // Asks the I/O loops; `callback` comes on the control loop.
  virtual void query_flows(std::function<void(std::vector<FlowStatus>)> callback) = 0;
};

}  // namespace braid
