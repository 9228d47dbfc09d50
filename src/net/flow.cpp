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

void Flow::take_channel(std::unique_ptr<FlowChannel> channel) {
  channel_ = std::move(channel);
  io_.driver.add(*this);
  channel_->start(*this);
}

void Flow::on_work() {
  if (!is_closing_) io_.driver.mark(*this);
}

void Flow::on_connected() { on_work(); }

void Flow::retire() {
  is_closing_ =
      true;  // what still arrives is not taken, hence not acknowledged, hence sent again elsewhere
  io_.driver.remove(*this);
  if (channel_ != nullptr) channel_->retire();
}

void Flow::close() {
  retire();
  if (channel_ != nullptr) channel_->close();
  channel_.reset();
}

}  // namespace braid
