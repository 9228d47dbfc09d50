// SPDX-License-Identifier: Apache-2.0
#include "ipc/frame_writer.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>

#include "ipc/frame_reader.h"

namespace braid {
namespace {

ssize_t send_some(int socket, const uint8_t* bytes, size_t count, std::span<const Fd> fds) {
  iovec part{const_cast<uint8_t*>(bytes), count};
  alignas(cmsghdr) char control[CMSG_SPACE(kFrameFdsMax * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    for (size_t i = 0; i < fds.size(); ++i) {
      const int fd = fds[i].get();
      std::memcpy(CMSG_DATA(header) + i * sizeof(int), &fd, sizeof(int));
    }
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

}  // namespace

Status FrameWriter::push(std::span<const uint8_t> bytes, std::span<const int> fds) {
  if (bytes.empty() || bytes.size() > kFrameBytesMax || fds.size() > kFrameFdsMax) {
    return make_status(StatusCode::InvalidArgument,
                       "a message of {} bytes and {} descriptors; allowed are 1 to {} bytes and {}",
                       bytes.size(), fds.size(), kFrameBytesMax, kFrameFdsMax);
  }
  const uint64_t size = bytes.size() + kFrameHeaderBytes;
  if (queued_bytes_ + size > queue_bytes_max_) {
    return make_status(StatusCode::ResourceExhausted,
                       "the other side does not read: {} bytes wait for it", queued_bytes_);
  }
  Pending pending;
  for (const int fd : fds) {
    Fd duplicate(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!duplicate.is_valid()) return Status::from_errno(errno, "cannot duplicate a descriptor");
    pending.fds.push_back(std::move(duplicate));
  }
  const auto length = static_cast<uint32_t>(bytes.size());
  pending.bytes.reserve(size);
  for (uint32_t shift = 0; shift < 32; shift += 8) {
    pending.bytes.push_back(static_cast<uint8_t>(length >> shift));
  }
  pending.bytes.insert(pending.bytes.end(), bytes.begin(), bytes.end());
  queue_.push_back(std::move(pending));
  queued_bytes_ += size;
  return {};
}

Status FrameWriter::flush(int socket) {
  while (!queue_.empty()) {
    Pending& front = queue_.front();
    const ssize_t sent = send_some(socket, front.bytes.data() + front.sent,
                                   front.bytes.size() - front.sent, front.fds);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
      return Status::from_errno(errno, "cannot write to the socket");
    }
    front.fds.clear();  // they went with the first byte
    front.sent += static_cast<size_t>(sent);
    if (front.sent == front.bytes.size()) {
      queued_bytes_ -= front.bytes.size();
      queue_.pop_front();
    }
  }
  return {};
}

}  // namespace braid
