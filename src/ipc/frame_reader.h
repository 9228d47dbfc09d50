// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace braid {

// The socket between client and daemon carries frames: uint32 length (little-endian), then as many
// bytes. Descriptors ride on the frame's first byte.
inline constexpr uint32_t kFrameHeaderBytes = 4;
inline constexpr uint32_t kFrameBytesMax = 16u << 20;
inline constexpr uint32_t kHelloFrameBytesMax = 4096;  // before the handshake, in both directions
inline constexpr uint32_t kFrameFdsMax = 4;

struct Frame {
  std::vector<uint8_t> bytes;  // without the length
  std::vector<Fd> fds;
};

// Puts frames together from a non-blocking stream socket. Never reads beyond the frame it is in, so
// that descriptors cannot be taken for another frame's. Memory grows with what has come, not with
// what was announced.
class FrameReader {
 public:
  enum class Outcome { Frame, WouldBlock, EndOfStream, Error };

  // At most one frame: then take(). WouldBlock: nothing is there now, or a part of a long frame was
  // read, so that other connections have their turn. A frame longer than
  // `bytes_max` (or empty), or with more than `fds_max` descriptors, is an error; error() says what
  // happened.
  Outcome read(int socket, uint32_t bytes_max, uint32_t fds_max = kFrameFdsMax);
  Frame take();
  // Those that came with a frame that will not be taken.
  std::vector<Fd> take_fds() { return std::exchange(frame_.fds, {}); }
  const Status& error() const { return error_; }
  // Some bytes of a frame have come, but not all.
  bool is_within_frame() const { return received_ > 0; }
  // That the frame takes which has not come in full.
  uint64_t memory_bytes() const { return frame_.bytes.capacity(); }

 private:
  enum class Received { Some, WouldBlock, EndOfStream, Error };
  Received receive(int socket, uint8_t* to, size_t bytes, uint32_t fds_max, size_t& received);

  uint8_t header_[kFrameHeaderBytes] = {};
  uint64_t received_ = 0;  // of header and bytes together
  uint32_t length_ = 0;
  Frame frame_;
  Status error_;
};

}  // namespace braid
