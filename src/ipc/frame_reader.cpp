// SPDX-License-Identifier: Apache-2.0
#include "ipc/frame_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>

namespace braid {
namespace {

constexpr size_t kReceiveBytes = 64 * 1024;  // by how much the buffer grows ahead of the data
constexpr size_t kBytesPerCall = 256 * 1024;
constexpr size_t kReservedAfterBytes = 1 << 20;  // of a frame have come

// As many as the kernel lets one message have. What there is no room for the kernel closes, in our
// name, and that may take for ever: see DescriptorCloser.
constexpr size_t kMessageFdsMax = 253;

void add_fds(msghdr& message, std::vector<Fd>& fds) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      fds.emplace_back(number);
    }
  }
}

uint32_t read_u32_le(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 |
         static_cast<uint32_t>(bytes[2]) << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

}  // namespace

FrameReader::Received FrameReader::receive(int socket, uint8_t* to, size_t bytes, uint32_t fds_max,
                                           size_t& received) {
  iovec part{to, bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(kMessageFdsMax * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t result = 0;
  do {
    result = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (result < 0 && errno == EINTR);
  if (result < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Received::WouldBlock;
    error_ = Status::from_errno(errno, "cannot read from the socket");
    return Received::Error;
  }
  add_fds(message, frame_.fds);
  // There is room for all that a message can have: the kernel dropped what it had no number for.
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    error_ = Status::from_errno(EMFILE, "descriptors that came with a message are lost");
    return Received::Error;
  }
  if (frame_.fds.size() > fds_max) {
    error_ = make_status(StatusCode::Protocol, "a message with {} descriptors; allowed here are {}",
                         frame_.fds.size(), fds_max);
    return Received::Error;
  }
  if (result == 0) return Received::EndOfStream;
  received = static_cast<size_t>(result);
  received_ += received;
  return Received::Some;
}

FrameReader::Outcome FrameReader::read(int socket, uint32_t bytes_max, uint32_t fds_max) {
  const uint64_t enough = received_ + kBytesPerCall;
  while (received_ < enough) {
    size_t received = 0;
    Received outcome{};
    if (received_ < kFrameHeaderBytes) {
      outcome =
          receive(socket, header_ + received_, kFrameHeaderBytes - received_, fds_max, received);
      if (outcome == Received::Some && received_ == kFrameHeaderBytes) {
        length_ = read_u32_le(header_);
        if (length_ == 0 || length_ > bytes_max) {
          error_ = make_status(StatusCode::Protocol, "a message of {} bytes; allowed are 1 to {}",
                               length_, bytes_max);
          return Outcome::Error;
        }
      }
    } else {
      const size_t filled = received_ - kFrameHeaderBytes;
      const size_t wanted = std::min<size_t>(length_ - filled, kReceiveBytes);
      // So that it never moves megabytes at once, and nobody gets memory for what he only
      // announces.
      if (filled >= kReservedAfterBytes && frame_.bytes.capacity() < length_)
        frame_.bytes.reserve(length_);
      frame_.bytes.resize(filled + wanted);
      outcome = receive(socket, frame_.bytes.data() + filled, wanted, fds_max, received);
      frame_.bytes.resize(filled + received);
      if (outcome == Received::Some && frame_.bytes.size() == length_) return Outcome::Frame;
    }
    switch (outcome) {
      case Received::Some:
        continue;
      case Received::WouldBlock:
        return Outcome::WouldBlock;
      case Received::EndOfStream:
        return Outcome::EndOfStream;
      case Received::Error:
        return Outcome::Error;
    }
  }
  return Outcome::WouldBlock;
}

Frame FrameReader::take() {
  received_ = 0;
  length_ = 0;
  return std::exchange(frame_, Frame{});
}

}  // namespace braid
