// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace braid {

// Frames of the control connection: uint32 length (little-endian), then as many bytes.
inline constexpr uint32_t kControlFrameHeaderBytes = 4;
inline constexpr uint32_t kControlMessageBytesMax = 16u << 20;
inline constexpr uint32_t kControlFrameBytesMax =
    kControlMessageBytesMax + 32;  // with numbers and tag: frame_seal.h
inline constexpr uint32_t kHandshakeFrameBytesMax =
    4u << 10;  // before the other side has proved anything

// The length of a frame as it stands in front of it.
std::array<uint8_t, kControlFrameHeaderBytes> control_frame_header(size_t payload_bytes);

// Puts frames together from a stream of bytes that is cut anywhere. Its memory grows with what has
// come, not with what was announced. A frame's bytes are aligned for FlatBuffers.
class ControlFrameReader {
 public:
  explicit ControlFrameReader(uint32_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  // From the next frame on.
  void set_frame_bytes_max(uint32_t bytes) { frame_bytes_max_ = bytes; }

  // Takes bytes off the front of `bytes`, up to the end of a frame. True: frame() is complete,
  // until the next call. False: all bytes were taken, more are needed. Protocol: an empty frame, or
  // one that is too long.
  Result<bool> read(std::span<const uint8_t>& bytes);
  std::span<uint8_t> frame() { return payload_; }

 private:
  uint32_t frame_bytes_max_;
  std::array<uint8_t, kControlFrameHeaderBytes> header_{};
  size_t header_received_ = 0;
  uint32_t length_ = 0;
  bool is_complete_ = false;
  std::vector<uint8_t> payload_;
};

}  // namespace braid
