// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/send_queue.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/socket.h>
#include <sys/uio.h>

namespace braid {
namespace {

constexpr size_t kMessagesAtOnce = 32;

// What is left of `part` after its first `sent` bytes, which are taken off `sent`.
std::span<const uint8_t> rest_of(std::span<const uint8_t> part, size_t& sent) {
  const size_t gone = std::min(sent, part.size());
  sent -= gone;
  return part.subspan(gone);
}

iovec as_iovec(std::span<const uint8_t> part) {
  return {const_cast<uint8_t*>(part.data()), part.size()};
}

}  // namespace

ssize_t SendQueue::send_some(int socket) {
  std::array<iovec, 2 * kMessagesAtOnce> parts{};
  size_t count = 0;
  size_t sent = sent_;
  const auto messages = waiting();
  for (const Message& one : messages.first(std::min(messages.size(), kMessagesAtOnce))) {
    for (const auto& part : {one.header, one.payload}) {
      const auto rest = rest_of(part, sent);
      if (!rest.empty()) parts[count++] = as_iovec(rest);
    }
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

SendQueue::Outcome SendQueue::flush(int socket, Owner& owner) {
  while (!empty()) {
    const ssize_t sent = send_some(socket);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return after_failed_send();
    }
    sent_ += static_cast<size_t>(sent);
    while (!empty()) {
      const Message& first = waiting().front();
      const size_t bytes = first.header.size() + first.payload.size();
      if (sent_ < bytes) break;
      sent_ -= bytes;
      end_message(owner);
    }
  }
  return Outcome::Empty;
}

}  // namespace braid
