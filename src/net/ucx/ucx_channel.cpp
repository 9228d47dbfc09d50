// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_channel.h"

#include <utility>

#include <poll.h>

namespace braid {
namespace {

constexpr unsigned kMissedCallsMax = 64;

bool is_readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

}  // namespace

UcxChannel::UcxChannel(Loop& loop, UcxWorkerMaker& maker, ChannelRole role,
                       UcxConnection connection)
    : loop_(loop),
      maker_(maker),
      role_(role),
      address_(connection.worker->address()),
      worker_(std::move(connection.worker)),
      endpoint_(std::move(connection.endpoint)) {}

UcxChannel::~UcxChannel() { close(); }

void UcxChannel::start(FlowChannelHandler& handler) {
  handler_ = &handler;
  if (endpoint_ == nullptr) return;
  const Status taken = take({std::move(worker_), std::move(endpoint_)});
  if (!taken) return handler.on_channel_error(taken);
  handler.on_connected();
}

void UcxChannel::connect(std::vector<uint8_t> remote_address) {
  maker_.connect(this, std::move(worker_), std::move(remote_address),
                 [this](UcxWorkerMaker::Made made) {
                   if (!made) return handler_->on_channel_error(made.status());
                   const Status taken = take(std::move(*made));
                   if (!taken) return handler_->on_channel_error(taken);
                   handler_->on_connected();
                 });
}

Status UcxChannel::take(UcxConnection connection) {
  worker_ = std::move(connection.worker);
  endpoint_ = std::move(connection.endpoint);
  endpoint_->set_handler(*this);
  BRAID_RETURN_IF_ERROR(worker_->set_handler(
      role_ == ChannelRole::SendsChunks ? proto::kAckMessage : proto::kChunkMessage, *this));
  auto poll = Poll::create(loop_, worker_->event_fd());
  if (!poll) return poll.status();
  poll_ = std::move(*poll);
  poll_->start(UV_READABLE, [this](int) { handler_->on_work(); });
  handler_->on_work();
  return Status::ok();
}

FlowChannel::SendResult UcxChannel::send(std::span<const uint8_t> header,
                                         std::span<const uint8_t> payload, uint64_t token) {
  const unsigned message =
      role_ == ChannelRole::SendsChunks ? proto::kChunkMessage : proto::kAckMessage;
  switch (endpoint_->send(message, header, payload, token)) {
    case UcxEndpoint::SendResult::Done:
      return SendResult::Done;
    case UcxEndpoint::SendResult::InProgress:
      return SendResult::InProgress;
    case UcxEndpoint::SendResult::Failed:
      break;
  }
  return SendResult::Failed;
}

bool UcxChannel::find_missed_work() {
  if (is_readable(worker_->event_fd())) return false;  // the loop is about to see it
  unsigned found = 0;
  while (found < kMissedCallsMax && progress()) ++found;
  return found != 0;
}

void UcxChannel::retire() {
  maker_.drop(this);
  poll_.reset();
}

void UcxChannel::close() {
  retire();
  if (worker_ == nullptr) return;
  const bool is_memory_free = endpoint_ == nullptr || endpoint_->close();
  endpoint_.reset();
  worker_->forget_handler();
  if (!is_memory_free) return worker_.reset();
  maker_.destroy({std::move(worker_), nullptr});
}

}  // namespace braid
