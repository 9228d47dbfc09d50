// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "loop/timer.h"
#include "net/full_size_loss.h"
#include "net/io_context.h"
#include "net/io_messages.h"
#include "net/link_numbers.h"
#include "net/outgoing_flow.h"

namespace braid {

// One flow of a link through its generations: opens it, opens it again after a pause that doubles
// each time that it dies, and replaces it by a new one where it has stayed slow. Counts its state
// in the rail's numbers. I/O loop only; lives as long as its link, which closes it.
class LinkFlow {
 public:
  struct Owner : OutgoingFlow::Owner {
    // A generation's channel was made, or could not be. With the offer: it waits for the other
    // side.
    virtual void on_channel_made(std::optional<FlowOffer> offer) = 0;
    // It has died with these chunks on its way, or could not be opened; error() says why.
    virtual void on_gone(LinkFlow& flow, std::vector<OutgoingChunk> unacknowledged) = 0;
  };

  // All that is passed by reference outlives it. `full_size_loss` is the rail's way to the peer.
  LinkFlow(IoContext& io, Owner& owner, const Peer& peer, const LinkKey& key, uint16_t index,
           RailNumbers& numbers, FullSizeLoss& full_size_loss);

  void open_soon();
  // The other side's answer to an offer; too late if the generation is another one by now.
  void on_accepted(FlowOffer accepted);
  void on_refused(const FlowRefusal& refusal);
  // The flow that has opened, or that has failed, is one of its generations.
  void on_open();
  void on_failed(OutgoingFlow& flow);
  // Its rail is down, or up again.
  void on_rail_changed();
  // It gets no more chunks, and is opened again when it has none left.
  void leave() { is_leaving_ = true; }
  bool is_to_replace() const { return is_leaving_ && !flow_->has_chunks_in_flight(); }
  void replace(uint64_t now_ns);
  // The slow generation stays until the new one is open, so that the other side sees no failure.
  bool has_former() const { return former_ != nullptr; }
  void drop_former();
  // For the last time. Returns the chunks that are not acknowledged.
  std::vector<OutgoingChunk> close();

  uint16_t index() const { return index_; }
  bool is_making_channel() const { return is_making_channel_; }
  bool was_tried() const { return is_open() || failures_ > 0; }
  bool is_open() const { return flow_ != nullptr && flow_->state() == Flow::State::Open; }
  bool is_leaving() const { return is_leaving_; }
  // Its present generation; nullptr: its channel is being made, or it waits for its next try.
  OutgoingFlow* flow() const { return flow_.get(); }
  // It is open and has room.
  void send(OutgoingChunk chunk, std::span<const uint8_t> bytes, uint64_t late_bytes_max) {
    numbers_.bytes_sent.add(bytes.size());
    flow_->send(std::move(chunk), bytes, late_bytes_max);
  }
  RailNumbers& numbers() const { return numbers_; }
  FullSizeLoss& full_size_loss() const { return full_size_loss_; }
  const Status& error() const { return error_; }  // of the last failure
  std::string description() const;
  LogFields fields() const;
  FlowStatus status(uint64_t now_ns) const;

 private:
  enum class Shown : uint8_t { Nothing, Opening, Open, Failed };  // in numbers_ and the counters

  void open(FlowChannels::Made made);
  OutgoingFlow* opening(uint32_t generation) const;
  void fail(Status error);
  std::vector<OutgoingChunk> retire();
  void show(Shown state);
  void count(Shown state, uint64_t amount);
  FlowKeys keys() const { return {key_, io_.io_loop, index_, generation_}; }

  IoContext& io_;
  Owner& owner_;
  const Peer& peer_;
  const LinkKey& key_;
  const uint16_t index_;
  RailNumbers& numbers_;
  FullSizeLoss& full_size_loss_;
  std::unique_ptr<OutgoingFlow> flow_;
  std::unique_ptr<OutgoingFlow> former_;
  Timer timer_;  // opening: the deadline; failed: the pause
  Shown shown_ = Shown::Nothing;
  bool is_making_channel_ = false;
  bool is_leaving_ = false;
  uint32_t generation_ = 0;
  uint32_t accepted_ = 0;  // the last generation that the other side has answered
  uint64_t pause_ms_ = 0;
  uint64_t failures_ = 0;
  Status error_;
  uint64_t failed_at_ns_ = 0;    // 0: never, as the next one
  uint64_t replaced_at_ns_ = 0;  // because it was slow
  uint64_t bytes_sent_ = 0;      // by generations that are gone
};

}  // namespace braid
