// SPDX-License-Identifier: Apache-2.0
#include "net/flow.h"

#include "net/flow_driver.h"

namespace braid {

Flow::Flow(FlowDriver& driver, std::string description)
    : driver_(driver), description_(std::move(description)) {}

Flow::~Flow() { close(); }

void Flow::fail(const Status& error) {
  if (state_ == State::Failed || is_closing_) return;
  state_ = State::Failed;
  error_ = error.with_context(description_);
  driver_.mark(*this);
}

Status Flow::open_worker(std::shared_ptr<UcxContext> context, uint64_t link_secret,
                         std::atomic<uint64_t>& strangers, unsigned message_id) {
  auto worker = UcxWorker::create(std::move(context), link_secret, strangers);
  if (!worker) return worker.status().with_context(description_);
  BRAID_RETURN_IF_ERROR((*worker)->set_handler(message_id, *this));
  auto address = (*worker)->address();
  if (!address) return address.status().with_context(description_);
  auto poll = Poll::create(driver_.loop(), (*worker)->event_fd());
  if (!poll) return poll.status().with_context(description_);
  address_ = std::move(*address);
  worker_ = std::move(*worker);
  poll_ = std::move(*poll);
  poll_->start(UV_READABLE, [this](int) { driver_.mark(*this); });
  driver_.add(*this);
  return Status::ok();
}

Status Flow::open_endpoint(std::span<const uint8_t> remote_address) {
  auto endpoint = UcxEndpoint::create(*worker_, remote_address, *this);
  if (!endpoint) return endpoint.status().with_context(description_);
  endpoint_ = std::move(*endpoint);
  driver_.mark(*this);
  return Status::ok();
}

void Flow::retire() {
  is_closing_ =
      true;  // what still arrives is not taken, hence not acknowledged, hence sent again elsewhere
  driver_.remove(*this);
  poll_.reset();
}

void Flow::close() {
  if (worker_ == nullptr) return;
  retire();
  endpoint_.reset();
  worker_.reset();
}

}  // namespace braid
