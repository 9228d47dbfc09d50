// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/log.h"
#include "engine/link.h"
#include "loop/timer.h"
#include "net/fair_queue.h"
#include "net/flow_choice.h"
#include "net/full_size_loss.h"
#include "net/io_context.h"
#include "net/io_messages.h"
#include "net/outgoing_flow.h"
#include "net/overdue_budget.h"
#include "net/silent_flows.h"
#include "net/slow_flows.h"

namespace braid {

// The flows from one I/O loop to one other node, and the queue that they pull from. A flow that
// dies gives its unacknowledged chunks back to the front of the queue and is opened again after a
// pause that doubles each time; so does one that has gone silent (see SilentFlows). One that stays
// much slower than the others is opened again once it has nothing on its way. When no flow is left
// for lost_timeout_ms, the link is lost.
class FlowLink final : public Link, private OutgoingFlow::Owner {
 public:
  struct Owner {
    virtual ~Owner() = default;
    // Its flows wait for the other side.
    virtual void on_flows_offered(FlowLink& link, std::vector<FlowOffer> offers) = 0;
    // Each flow was opened or has failed, for the first time.
    virtual void on_link_tried(FlowLink& link, size_t flows_open, const Status& error) = 0;
    virtual void on_link_lost(FlowLink& link, const Status& reason) = 0;
    // pump() has something to do.
    virtual void on_link_ready(FlowLink& link) = 0;
  };

  FlowLink(IoContext& io, Owner& owner, Peer peer, uint64_t nonce, const LinkKey& key);
  ~FlowLink() override;

  const Peer& peer() const { return peer_; }
  uint64_t nonce() const { return nonce_; }
  // It had an open flow once; chunks may be submitted.
  bool is_established() const { return is_established_ && !is_closed_; }
  bool has_chunks() const;

  void start();
  // Opens more until there are so many; fewer changes nothing.
  void add_flows(size_t flows);
  void on_accepted(FlowOffer accepted);
  void on_refused(const FlowRefusal& refusal);
  // Somebody is about to use the link: asks on each flow whether the other side answers.
  void prove();
  // Gives up the flows of rails that are down, and opens those of rails that are up again.
  void on_rails_changed();
  // Moves chunks from the queue to flows with room.
  void pump();
  // Closes all flows and settles all chunks as not acknowledged. For the last time.
  void close(const Status& reason);
  void list_flows(std::vector<FlowStatus>& out) const;

  void submit(OutgoingChunk chunk) override;

  bool is_ready = false;  // in the owner's list

 private:
  struct FlowSlot {  // of one flow, through its generations
    std::unique_ptr<OutgoingFlow> flow;
    // It was slow and is done; it stays until the new one is open, so that the other side sees no
    // failure.
    std::unique_ptr<OutgoingFlow> former;
    std::unique_ptr<Timer> timer;  // opening: the deadline; failed: the pause
    uint32_t generation = 0;
    uint32_t accepted = 0;  // the last generation that the other side has answered
    uint64_t pause_ms = 0;
    uint64_t failures = 0;
    Status error;                 // of the last failure
    uint64_t failed_at_ns = 0;    // 0: never, as the next one
    uint64_t replaced_at_ns = 0;  // because it was slow
    uint64_t bytes_sent = 0;      // by former generations
    bool was_tried = false;
    bool is_leaving = false;  // gets no more chunks, and is opened again when it has none left
    bool is_to_open = false;  // its worker is being made
  };

  void open_soon(size_t slot);
  void open_flow(uint16_t index, UcxWorkerMaker::Made made);
  void fail_flow(uint16_t index, Status error);
  void retire_flow(FlowSlot& slot);
  void drop_former(FlowSlot& slot);
  void note_tried(FlowSlot& slot);
  std::string description_of(uint16_t index) const;
  FlowKeys keys_of(uint16_t index) const {
    return {key_, io_.io_loop, index, slots_[index].generation};
  }
  LogFields fields_of(uint16_t index) const;
  Status rail_is_down(uint16_t index) const;
  void start_watching();
  void watch();
  void give_up(OutgoingFlow& flow);
  FullSizeLoss& full_size_loss_of(size_t index) {
    return full_size_losses_[index % full_size_losses_.size()];
  }
  std::string describe_full_size_loss(uint16_t index);
  void look_for_overdue();
  void repeat_overdue(OutgoingFlow& flow);
  uint64_t usual_wait_ns() const;
  OutgoingFlow* flow_for_second_copy();
  OutgoingFlow* flow_of(uint16_t index, uint32_t generation);
  void look_at_flows();
  void note_room(uint32_t window_bytes);
  std::span<FlowLoad> open_flows(size_t count);
  void replace_slow_flows();
  void drop_formers();
  size_t flows_open() const;
  void count_flows();
  RailNumbers& numbers_of(size_t index) { return numbers_->rail_of(static_cast<uint16_t>(index)); }
  void show_traffic(bool is_quiet);

  void on_flow_open(OutgoingFlow& flow) override;
  void on_flow_failed(OutgoingFlow& flow) override;
  void on_flow_has_room() override { owner_.on_link_ready(*this); }

  IoContext& io_;
  Owner& owner_;
  const Peer peer_;
  const uint64_t nonce_;
  const LinkKey key_;
  const std::shared_ptr<LinkNumbers> numbers_;
  std::vector<FlowSlot> slots_;
  FairQueue queue_;
  std::vector<FlowLoad> loads_;  // of slots_, while pump() gives chunks to them
  SlowFlows slow_flows_;
  SilentFlows silent_flows_;
  std::vector<FullSizeLoss> full_size_losses_;  // by rail
  bool tells_trouble_ = false;                  // in numbers_
  std::vector<FlowWait> waits_;                 // of slots_, while watch() looks at them
  uint32_t quiet_looks_ = 0;                    // with nothing on its way
  OverdueBudget overdue_budget_;
  uint32_t idle_looks_ = 0;  // of look_for_overdue(), with nothing on its way
  Timer overdue_timer_;
  Timer watch_timer_;  // while something is on its way, and a little longer
  bool has_formers_ = false;
  size_t next_flow_ = 0;  // where to look first
  size_t untried_ = 0;
  uint64_t flows_opening_ = 0;     // as IoCounters have them
  uint64_t flows_failed_ = 0;      //
  size_t to_open_ = 0;             // of slots_
  std::vector<FlowOffer> offers_;  // of those opened since; told when to_open_ is 0 again
  bool is_established_ = false;
  bool is_closed_ = false;
  Status last_error_;
  Timer lost_timer_;
};

}  // namespace braid
