// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/delivery_rate.h"
#include "net/flow.h"
#include "net/io_context.h"
#include "net/received_window.h"
#include "net/round_trip.h"

namespace braid {

// A flow that we send data on. It is open once the other side has acknowledged a probe (a chunk
// without bytes and with sequence 0): then both directions and the flow's keys are known to be
// right.
class OutgoingFlow final : public Flow {
 public:
  struct Owner {
    virtual ~Owner() = default;
    virtual void on_flow_open(OutgoingFlow& flow) = 0;
    virtual void on_flow_failed(OutgoingFlow& flow) = 0;  // may destroy it
    virtual void on_flow_has_room() = 0;
  };

  struct Identity {
    NodeId peer;
    uint16_t index;
    uint64_t token;
  };
  OutgoingFlow(IoContext& io, Owner& owner, std::unique_ptr<FlowChannel> channel, Identity identity,
               std::string description);
  ~OutgoingFlow() override;

  // The other side has answered with the address of its channel. Once.
  void connect(std::vector<uint8_t> remote_address);

  uint16_t index() const { return index_; }
  // For one more chunk, when so many bytes may be unacknowledged.
  bool has_room(uint32_t window_bytes) const {
    return unacknowledged_bytes_ < window_bytes && has_slot();
  }
  uint64_t unacknowledged_bytes() const { return unacknowledged_bytes_; }
  bool has_chunks_in_flight() const { return settled_ + 1 != next_sequence_; }
  uint64_t bytes_sent() const { return bytes_sent_; }
  double bytes_per_second() const { return rate_.bytes_per_second(clock_.now_ns()); }  // 0: unknown
  const RoundTrip& round_trip() const { return round_trip_; }
  // When the last acknowledgement came.
  uint64_t heard_at_ns() const { return heard_at_ns_; }
  // Since when something has been on its way and nothing was acknowledged; 0: nothing is on its
  // way.
  uint64_t waiting_since_ns() const;
  // When the oldest chunk that is not acknowledged was sent; 0: there is none.
  uint64_t oldest_sent_at_ns() const {
    return has_unacknowledged() ? slots_[(acknowledged_ + 1) % kChunksInFlightMax].mark.sent_at_ns
                                : 0;
  }
  // How much of that the other side does not explain by acknowledging later.
  uint64_t waited_ns(uint64_t now_ns) const;

  // has_room() must hold, for the window of the chunk's job. `bytes` are those of `chunk`. Once
  // `late_bytes_max` bytes are unacknowledged, no acknowledgement may wait.
  void send(OutgoingChunk chunk, std::span<const uint8_t> bytes, uint64_t late_bytes_max);
  // The oldest chunk on its way that the channel has let go of and that was not repeated yet
  // becomes the first copy of a TwiceSent; the second copy is returned.
  std::optional<OutgoingChunk> repeat_oldest();
  // Nothing was acknowledged for longer than the link's round trips explain (see
  // OverdueChunks); over with the next acknowledgement.
  bool is_overdue = false;
  bool has_unacknowledged() const { return acknowledged_ + 1 != next_sequence_; }
  // Bytes of the largest chunk on its way; 0: there is none.
  uint32_t largest_unacknowledged() const;
  // Likewise, of those that were acknowledged since the last call.
  uint32_t take_largest_acknowledged() { return std::exchange(largest_acknowledged_, 0); }
  // What TCP has sent again since the last call, where it tells.
  uint64_t take_segments_resent(const SocketState& state) {
    return state.segments_resent - std::exchange(segments_resent_, state.segments_resent);
  }
  // Asks the other side for an acknowledgement, unless something is on its way anyway.
  void prove();
  // For the last time: breaks the connection, settles what was acknowledged and hands back the
  // rest, in order.
  std::vector<OutgoingChunk> close_and_reclaim();

  void on_message(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                  bool is_whole) override;
  void on_send_done(uint64_t sequence, const Status& status) override;
  Result<uint32_t> payload_bytes(std::span<const uint8_t> header) override;
  void on_connected() override;
  void on_failed() override { owner_.on_flow_failed(*this); }

 private:
  // A chunk on its way. Its header is what the channel sends from.
  struct Slot {
    OutgoingChunk chunk;
    DeliveryRate::Mark mark;
    bool is_sending = false;  // the channel may still read the memory
  };

  bool has_slot() const {
    return state() == State::Open && next_sequence_ - 1 - settled_ < kChunksInFlightMax;
  }
  void send_probe();
  bool needs_ack_at_once(uint64_t now_ns, uint64_t late_bytes_max) const;
  void acknowledge(uint64_t sequence);
  void note_chunk(const Slot& slot) const;
  void settle_acknowledged();
  Slot& slot(uint64_t sequence) { return slots_[sequence % kChunksInFlightMax]; }

  Owner& owner_;
  const NodeId peer_;
  const uint16_t index_;
  const uint64_t token_;
  proto::ChunkHeader probe_{};
  uint64_t probe_sent_at_ns_ = 0;  // 0: none is to be answered
  bool is_probe_sending_ = false;  // the channel may still read the header
  // settled_ <= acknowledged_ < next_sequence_
  uint64_t next_sequence_ = 1;
  uint64_t acknowledged_ = 0;
  uint64_t settled_ = 0;
  uint64_t unacknowledged_bytes_ = 0;
  uint64_t bytes_sent_ = 0;
  uint32_t largest_acknowledged_ = 0;
  uint64_t segments_resent_ = 0;
  SystemClock clock_;
  DeliveryRate rate_;
  RoundTrip round_trip_;
  uint64_t asked_at_ns_ = 0;  // for the last acknowledgement at once
  uint64_t heard_at_ns_ = 0;
  std::array<Slot, kChunksInFlightMax> slots_;
};

}  // namespace braid
