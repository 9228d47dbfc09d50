// SPDX-License-Identifier: Apache-2.0
#include "control/reconnect.h"

namespace braid {

Reconnect::Reconnect(Loop& loop, HandshakeOptions options, uint32_t every_ms, uint32_t deadline_ms,
                     Hooks hooks)
    : loop_(loop),
      options_(std::move(options)),
      every_ms_(every_ms),
      deadline_ms_(deadline_ms),
      hooks_(std::move(hooks)),
      timer_(loop) {}

void Reconnect::start(const SocketAddress& address) {
  address_ = address;
  attempt();
  timer_.start_repeating(every_ms_, [this] { attempt(); });
}

void Reconnect::stop() {
  timer_.stop();
  for (auto& one : attempts_) {
    if (one->is_connecting()) ControlConnection::discard(std::move(one));
  }
  attempts_.remove(nullptr);
}

void Reconnect::close() {
  timer_.stop();
  for (auto& one : attempts_) ControlConnection::discard(std::move(one));
  attempts_.clear();
}

void Reconnect::attempt() {
  if (attempts_.size() >= kAttemptsMax) {
    ControlConnection::discard(std::move(attempts_.front()));
    attempts_.pop_front();
  }
  attempts_.push_back(ControlConnection::connect(loop_, *address_, options_, deadline_ms_, *this));
}

void Reconnect::on_established(ControlConnection& connection) {
  hooks_.established(take_out(attempts_, connection));
}

void Reconnect::on_broken(ControlConnection& connection, const Status& reason) {
  ControlConnection::discard(take_out(attempts_, connection));
  hooks_.failed(reason);
}

}  // namespace braid
