// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/outgoing_messages.h"

#include <cerrno>
#include <utility>

namespace braid {

void OutgoingMessages::push(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                            uint64_t token) {
  if (waiting().empty()) {
    messages_.clear();
    first_ = 0;
  } else if (messages_.size() == messages_.capacity() && first_ > 0) {
    messages_.erase(messages_.begin(), messages_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }
  messages_.push_back({header, payload, token});
}

void OutgoingMessages::end_message(Owner& owner) { owner.on_sent(messages_[first_++].token); }

OutgoingMessages::Outcome OutgoingMessages::fail(Status error) {
  error_ = std::move(error);
  return Outcome::Failed;
}

OutgoingMessages::Outcome OutgoingMessages::after_failed_send() {
  if (errno == EAGAIN) return Outcome::Full;
  return fail(Status::from_errno(errno, "the connection broke"));
}

}  // namespace braid
