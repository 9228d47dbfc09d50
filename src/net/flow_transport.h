// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "loop/door.h"
#include "net/io_messages.h"
#include "net/io_transport.h"
#include "net/node_links.h"
#include "net/rail_watch.h"
#include "net/transport.h"

namespace braid {

// The control loop's side: carries offers of flows, and the answers to them, between the control
// plane and the I/O loops, and watches rails.
class FlowTransport final : public Transport {
 public:
  FlowTransport(Loop& control_loop, const std::vector<IoLoop>& io_loops, TransportOptions options,
                std::shared_ptr<FlowNetwork> network, ControlPlane& control_plane);
  ~FlowTransport() override;

  void open_link(NodeId peer, OpenCallback callback) override;
  bool close_idle_links(const std::unordered_set<NodeId>& used, uint64_t idle_ms) override;
  void add_flows(NodeId peer, uint32_t flows) override;
  bool on_control_message(const Peer& from, const proto::ControlMessage& message) override;
  void on_peer_lost(NodeId peer) override;
  Links& links(size_t io_loop) override { return *io_transports_[io_loop]; }
  void set_link_lost_callback(std::function<void(const Peer&, const Status&)> callback) override {
    link_lost_ = std::move(callback);
  }
  void close(std::function<void()> closed) override;
  std::string description() const override;
  std::vector<RailStatus> rails() const override;
  TransportCounters counters() const override;
  std::vector<LinkStatus> link_statuses() const override;
  void query_flows(std::function<void(std::vector<FlowStatus>)> callback) override;

 private:
  struct Query {
    std::function<void(std::vector<FlowStatus>)> callback;
    size_t loops_missing = 0;
    std::vector<FlowStatus> flows;
  };

  void handle(FlowsOffered& report);
  void handle(FlowAccepted& report);
  void handle(FlowRefused& report);
  void handle(LinkTried& report);
  void handle(LinkLost& report);
  void handle(FlowsListed& report);
  void handle(AllClosed& report);

  void watch_rails();

  void on_flow_open(const Peer& from, const proto::FlowOpen& message);
  std::string find_difference(const proto::FlowOpen& message) const;
  void on_flow_accept(const Peer& from, const proto::FlowAccept& message);
  void on_flow_refuse(const Peer& from, const proto::FlowRefuse& message);

  Loop& control_loop_;
  const TransportOptions options_;
  const std::shared_ptr<FlowNetwork> network_;
  ControlPlane& control_plane_;
  std::unique_ptr<Door<IoReport>> reports_;
  std::vector<std::unique_ptr<IoTransport>> io_transports_;
  std::unique_ptr<RailWatch> rail_watch_;
  std::unique_ptr<std::atomic<bool>[]> rails_up_;  // written on the control loop
  NodeLinks links_;
  std::map<uint64_t, Query> queries_;
  uint64_t next_query_ = 1;
  std::function<void(const Peer&, const Status&)> link_lost_;
  std::function<void()> closed_;
  size_t loops_to_close_ = 0;
  bool is_closing_ = false;
};

}  // namespace braid
