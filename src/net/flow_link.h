// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/link.h"
#include "loop/timer.h"
#include "net/fair_queue.h"
#include "net/flow_choice.h"
#include "net/io_context.h"
#include "net/io_messages.h"
#include "net/link_flow.h"
#include "net/link_watch.h"
#include "net/overdue_chunks.h"
#include "net/slow_flows.h"

namespace braid {

// The flows from one I/O loop to one other node, and the queue that they pull from. A flow that
// dies gives its unacknowledged chunks back to the front of the queue. A flow that stays much
// slower than the others gets no more chunks and is replaced. When no flow is left for
// lost_timeout_ms, the link is lost. I/O loop only.
class FlowLink final : public Link, private LinkFlow::Owner {
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
  void look_at_flows();
  void note_room(uint32_t window_bytes);
  std::span<FlowLoad> open_flows(size_t count);
  void replace_slow_flows();
  void drop_formers();
  void take_back(std::vector<OutgoingChunk> unacknowledged);
  void note_tried();
  size_t flows_open() const;
  LinkFlow* flow_at(uint16_t index) const {
    return index < flows_.size() ? flows_[index].get() : nullptr;
  }

  void on_channel_made(std::optional<FlowOffer> offer) override;
  void on_gone(LinkFlow& flow, std::vector<OutgoingChunk> unacknowledged) override;
  void on_flow_open(OutgoingFlow& flow) override;
  void on_flow_failed(OutgoingFlow& flow) override { flows_[flow.index()]->on_failed(flow); }
  void on_flow_has_room() override { owner_.on_link_ready(*this); }

  IoContext& io_;
  Owner& owner_;
  const Peer peer_;
  const uint64_t nonce_;
  const LinkKey key_;
  const std::shared_ptr<LinkNumbers> numbers_;
  std::vector<FullSizeLoss> full_size_losses_;  // by rail
  LinkFlows flows_;
  FairQueue queue_;
  OverdueChunks overdue_;
  LinkWatch watch_;
  SlowFlows slow_flows_;
  std::vector<FlowLoad> loads_;  // of flows_, while pump() gives chunks to them
  bool has_formers_ = false;
  size_t next_flow_ = 0;           // where to look first
  std::vector<FlowOffer> offers_;  // told when no channel is being made any more
  bool was_tried_ = false;         // the owner knows
  bool is_established_ = false;
  bool is_closed_ = false;
  Status last_error_;  // of any flow
  Timer lost_timer_;
};

}  // namespace braid
