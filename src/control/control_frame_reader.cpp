// SPDX-License-Identifier: Apache-2.0
#include "control/control_frame_reader.h"

#include <algorithm>
#include <cstring>

namespace braid {
namespace {

constexpr size_t kPayloadBytesKept = 64 << 10;  // a rare large frame's memory is given back

}  // namespace

std::array<uint8_t, kControlFrameHeaderBytes> control_frame_header(size_t payload_bytes) {
  const auto length = static_cast<uint32_t>(payload_bytes);
  std::array<uint8_t, kControlFrameHeaderBytes> header{};
  std::memcpy(header.data(), &length, sizeof(length));
  return header;
}

Result<bool> ControlFrameReader::read(std::span<const uint8_t>& bytes) {
  if (is_complete_) {
    is_complete_ = false;
    header_received_ = 0;
    payload_.clear();
    if (payload_.capacity() > kPayloadBytesKept) payload_ = {};
  }
  if (header_received_ < header_.size()) {
    const size_t taken = std::min(bytes.size(), header_.size() - header_received_);
    std::copy_n(bytes.begin(), taken, header_.begin() + static_cast<ptrdiff_t>(header_received_));
    header_received_ += taken;
    bytes = bytes.subspan(taken);
    if (header_received_ < header_.size()) return false;
    std::memcpy(&length_, header_.data(), sizeof(length_));
  }
  // Checked on every call: a frame that began under a limit stays under the one that holds when it
  // goes on.
  if (length_ == 0 || length_ > frame_bytes_max_) {
    return make_status(StatusCode::Protocol,
                       "a frame of {} bytes was announced (1 to {} are allowed)", length_,
                       frame_bytes_max_);
  }
  const size_t taken = std::min<size_t>(bytes.size(), length_ - payload_.size());
  payload_.insert(payload_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(taken));
  bytes = bytes.subspan(taken);
  is_complete_ = payload_.size() == length_;
  return is_complete_;
}

}  // namespace braid
