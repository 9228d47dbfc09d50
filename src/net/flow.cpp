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

void Flow::connect_worker(std::vector<uint8_t> remote_address, unsigned message_id) {
  io_.workers.connect(this, std::move(worker_), std::move(remote_address),
                      [this, message_id](UcxWorkerMaker::Made made) {
                        if (!made) return fail(made.status());
                        if (state_ == State::Failed) return io_.workers.destroy(std::move(*made));
                        Status taken = take_connection(std::move(*made), message_id);
                        if (!taken) return fail(taken);
                        on_connected();
                      });
}

Status Flow::take_connection(UcxConnection connection, unsigned message_id) {
  worker_ = std::move(connection.worker);
  endpoint_ = std::move(connection.endpoint);
  endpoint_->set_handler(*this);
  BRAID_RETURN_IF_ERROR(worker_->set_handler(message_id, *this));
  auto poll = Poll::create(io_.loop, worker_->event_fd());
  if (!poll) return poll.status();
  poll_ = std::move(*poll);
  poll_->start(UV_READABLE, [this](int) { io_.driver.mark(*this); });
  io_.driver.add(*this);
  io_.driver.mark(*this);
  return Status::ok();
}

void Flow::retire() {
  is_closing_ =
      true;  // what still arrives is not taken, hence not acknowledged, hence sent again elsewhere
  io_.driver.remove(*this);
  io_.workers.drop(this);
  poll_.reset();
}

void Flow::close() {
  retire();
  if (worker_ == nullptr) return;
  const bool is_memory_free = endpoint_ == nullptr || endpoint_->close();
  endpoint_.reset();
  worker_->forget_handler();
  if (!is_memory_free) return worker_.reset();
  io_.workers.destroy({std::move(worker_), nullptr});
}

}  // namespace braid
