// SPDX-License-Identifier: Apache-2.0
#include "net/flow.h"

#include "net/flow_driver.h"
#include "net/io_context.h"

namespace braid {

Flow::Flow(IoContext& io, std::string description)
    : io_(io), description_(std::move(description)) {}

Flow::~Flow() { close(); }

void Flow::fail(const Status& error) {
  if (state_ == State::Failed || is_closing_) return;
  state_ = State::Failed;
  error_ = error.with_context(description_);
  io_.driver.mark(*this);
}

Status Flow::take_worker(std::unique_ptr<UcxWorker> worker, unsigned message_id) {
  BRAID_RETURN_IF_ERROR(worker->set_handler(message_id, *this));
  auto poll = Poll::create(io_.loop, worker->event_fd());
  if (!poll) return poll.status().with_context(description_);
  worker_ = std::move(worker);
  poll_ = std::move(*poll);
  poll_->start(UV_READABLE, [this](int) { io_.driver.mark(*this); });
  io_.driver.add(*this);
  return Status::ok();
}

Status Flow::open_endpoint(std::span<const uint8_t> remote_address) {
  auto endpoint = UcxEndpoint::create(*worker_, remote_address, *this);
  if (!endpoint) return endpoint.status().with_context(description_);
  endpoint_ = std::move(*endpoint);
  io_.driver.mark(*this);
  return Status::ok();
}

void Flow::retire() {
  is_closing_ =
      true;  // what still arrives is not taken, hence not acknowledged, hence sent again elsewhere
  io_.driver.remove(*this);
  poll_.reset();
}

void Flow::close() {
  if (worker_ == nullptr) return;
  retire();
  const bool is_memory_free = endpoint_ == nullptr || endpoint_->close();
  endpoint_.reset();
  worker_->forget_handler();
  if (!is_memory_free) return worker_.reset();
  io_.workers.destroy(std::move(worker_));
}

}  // namespace braid
