// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "loop/timer.h"
#include "net/flow.h"
#include "net/io_context.h"
#include "net/received_window.h"

namespace braid {

// A flow that another node sends data on: hands chunks to the loop's sink and acknowledges them
// when their sender needs it (proto::AckTime).
class IncomingFlow final : public Flow {
 public:
  struct Owner {
    virtual ~Owner() = default;
    virtual void on_flow_failed(IncomingFlow& flow) = 0;  // may destroy it
  };

  // `numbers`: of its rail, where its bytes are counted.
  static std::unique_ptr<IncomingFlow> create(IoContext& io, Owner& owner,
                                              std::unique_ptr<FlowChannel> channel, NodeId from,
                                              uint64_t token, std::string description,
                                              std::shared_ptr<RailNumbers> numbers);
  ~IncomingFlow() override;

  uint64_t bytes_received() const { return bytes_received_; }
  // Nothing has come for a while: a sender that closes it now loses nothing.
  bool is_idle() const;

  void on_message(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                  bool is_whole) override;
  void on_send_done(uint64_t token, const Status& status) override;
  Result<uint32_t> payload_bytes(std::span<const uint8_t> header) override;
  ChunkIntake intake(std::span<const uint8_t> header) override;
  void fold(std::span<const uint8_t> header, uint32_t offset,
            std::span<const uint8_t> piece) override;
  void on_message_taken(std::span<const uint8_t> header, bool was_dropped) override;
  void after_progress() override;
  void on_failed() override { owner_.on_flow_failed(*this); }

 private:
  static constexpr uint64_t kNever = UINT64_MAX;

  IncomingFlow(IoContext& io, Owner& owner, NodeId from, uint64_t token, std::string description,
               std::shared_ptr<RailNumbers> numbers);
  bool note(const proto::ChunkHeader& header);
  void reject();
  void acknowledge();

  Owner& owner_;
  const NodeId from_;
  const uint64_t token_;
  const std::shared_ptr<RailNumbers> numbers_;
  Timer open_timer_;
  Timer ack_timer_;  // of ack_due_ms_
  ReceivedWindow received_;
  uint64_t bytes_received_ = 0;
  uint64_t last_message_ms_ = 0;
  proto::AckHeader ack_{};  // the one that is on its way, or the last one
  // By uv_now(): when the next acknowledgement has to go, and when the timer looks.
  uint64_t ack_due_ms_ = kNever;
  uint64_t ack_timer_due_ms_ = kNever;
  bool is_ack_sending_ = false;
};

}  // namespace braid
