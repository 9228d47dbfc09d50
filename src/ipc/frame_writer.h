// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace braid {

// The frames (see frame_reader.h) that wait for room in a non-blocking stream socket, bounded.
class FrameWriter {
 public:
  explicit FrameWriter(uint64_t queue_bytes_max) : queue_bytes_max_(queue_bytes_max) {}

  // Takes one frame. Descriptors are duplicated. Fails when the queue would grow beyond its limit.
  Status push(std::span<const uint8_t> bytes, std::span<const int> fds);

  // Sends what the socket takes. EPIPE and friends come back as errors.
  Status flush(int socket);
  bool is_empty() const { return queue_.empty(); }
  uint64_t queued_bytes() const { return queued_bytes_; }

 private:
  struct Pending {
    std::vector<uint8_t> bytes;  // with the length in front
    std::vector<Fd> fds;         // until the first byte was sent
    size_t sent = 0;
  };

  uint64_t queue_bytes_max_;
  uint64_t queued_bytes_ = 0;
  std::deque<Pending> queue_;
};

}  // namespace braid
