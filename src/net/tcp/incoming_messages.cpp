// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/incoming_messages.h"

#include <cerrno>

#include <sys/socket.h>

namespace braid {

std::optional<size_t> IncomingMessages::receive(int socket, std::span<iovec> parts,
                                                FlowChannelHandler& handler) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t received = ::recvmsg(socket, &message, MSG_DONTWAIT);
  if (received > 0) return static_cast<size_t>(received);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  handler.on_channel_error(
      received < 0 ? Status::from_errno(errno, "the connection broke")
                   : Status(StatusCode::Unavailable, "the other side closed the connection"));
  return std::nullopt;
}

}  // namespace braid
