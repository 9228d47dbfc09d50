// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "loop/poll.h"
#include "net/flow_channel.h"
#include "net/ucx/ucx_endpoint.h"
#include "net/ucx/ucx_worker.h"
#include "net/ucx/ucx_worker_maker.h"

namespace braid {

// A flow over UCX: one worker with one endpoint, so one socket or one queue pair. Messages are
// active messages.
class UcxChannel final : public FlowChannel, private UcxMessageHandler, private UcxEndpointHandler {
 public:
  // `maker` connects and destroys the worker, and outlives the channel. Without an endpoint the
  // channel waits for connect().
  UcxChannel(Loop& loop, UcxWorkerMaker& maker, ChannelRole role, UcxConnection connection);
  ~UcxChannel() override;

  void start(FlowChannelHandler& handler) override;
  const std::vector<uint8_t>& address() const override { return address_; }
  void connect(std::vector<uint8_t> remote_address) override;
  bool is_connected() const override { return endpoint_ != nullptr; }
  SendResult send(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                  uint64_t token) override;
  bool progress() override { return worker_->progress() != 0; }
  bool arm() override { return worker_->arm(); }
  void shut() override { worker_->shut(); }
  void retire() override;
  void close() override;
  bool may_miss_work() const override { return true; }
  bool find_missed_work() override;

 private:
  Status take(UcxConnection connection);
  void on_message(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                  bool is_whole) override {
    handler_->on_message(header, payload, is_whole);
  }
  void on_endpoint_error(const Status& error) override { handler_->on_channel_error(error); }
  void on_send_done(uint64_t token, const Status& status) override {
    handler_->on_send_done(token, status);
  }

  Loop& loop_;
  UcxWorkerMaker& maker_;
  const ChannelRole role_;
  const std::vector<uint8_t> address_;
  FlowChannelHandler* handler_ = nullptr;
  std::unique_ptr<UcxWorker> worker_;  // nullptr: it is being connected, or the channel is closed
  std::unique_ptr<UcxEndpoint> endpoint_;
  std::unique_ptr<Poll> poll_;  // of the worker's event descriptor: goes before the worker
};

}  // namespace braid
