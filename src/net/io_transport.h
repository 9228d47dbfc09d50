// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "loop/door.h"
#include "loop/paced_tasks.h"
#include "net/flow_driver.h"
#include "net/flow_link.h"
#include "net/flow_network.h"
#include "net/incoming_flow.h"
#include "net/io_messages.h"
#include "net/link_board.h"

namespace braid {

// All flows of one I/O loop, to and from every peer. Made before the loop runs; told what to do
// through its door, and answers through the control loop's.
class IoTransport final : public Links,
                          private FlowDriver::Owner,
                          private FlowLink::Owner,
                          private IncomingFlow::Owner {
 public:
  IoTransport(uint16_t io_loop, IoLoop where, const TransportOptions& options, FlowNetwork& network,
              Door<IoReport>& reports);
  ~IoTransport() override;  // after AllClosed

  // Any thread, until CloseAll was sent.
  Door<IoCommand>& commands() { return *commands_; }
  const IoCounters& counters() const { return counters_; }
  const LinkBoard& link_board() const { return link_board_; }

  Link* find(NodeId peer) override;
  void limit(uint64_t job_key, const LinkLimits& limits) override;

 private:
  // What lives on the loop; goes there, when all is closed.
  struct Incoming {
    std::unique_ptr<IncomingFlow> flow;
    uint16_t io_loop;  // the sender's
    uint16_t index;
    Peer peer;
  };

  void handle(OpenLink& command);
  void handle(AddFlows& command);
  void handle(ProveFlows& command);
  void handle(CloseLink& command);
  void handle(ConnectFlow& command);
  void handle(RefuseFlow& command);
  void handle(AcceptFlow& command);
  void handle(ClosePeer& command);
  void handle(RailChanged& command);
  void handle(ListFlows& command);
  void handle(CloseAll& command);

  void accept(uint64_t request, FlowChannels::Made made);
  Status prepare_incoming(const AcceptFlow& command);
  void open_incoming(const AcceptFlow& command, std::unique_ptr<FlowChannel> channel);
  void finish_closing();
  void refuse(const AcceptFlow& command, const std::string& reason);
  void on_rails_changed();
  void close_link(NodeId peer, const Status& reason);
  void close_incoming(size_t at);
  FlowLink* link_to(NodeId peer);

  void before_round() override;
  bool expects_progress() const override;
  void on_flows_offered(FlowLink& link, std::vector<FlowOffer> offers) override;
  void on_link_tried(FlowLink& link, size_t flows_open, const Status& error) override;
  void on_link_lost(FlowLink& link, const Status& reason) override;
  void on_link_ready(FlowLink& link) override;
  void on_flow_failed(IncomingFlow& flow) override;

  Loop& loop_;
  Door<IoReport>& reports_;
  IoCounters counters_;
  LinkBoard link_board_;
  JobLimits limits_;
  std::unique_ptr<FlowDriver> driver_;
  std::unique_ptr<PacedTasks> paced_;
  std::unique_ptr<FlowChannels> channels_;
  std::optional<IoContext> io_;
  std::unique_ptr<Door<IoCommand>> commands_;
  std::unordered_map<NodeId, std::unique_ptr<FlowLink>> links_;
  std::vector<Incoming> incoming_;
  std::map<uint64_t, AcceptFlow> to_accept_;  // by request; their channels are being made
  uint64_t last_request_ = 0;                 // of to_accept_
  std::vector<FlowLink*> ready_;              // links with something for pump()
  std::vector<FlowLink*> pumping_;            // of ready_, being pumped
  bool is_closed_ = false;
};

}  // namespace braid
