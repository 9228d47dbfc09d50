// SPDX-License-Identifier: Apache-2.0
#include "control/frame_seal.h"

#include <algorithm>
#include <cstring>

namespace braid {
namespace {

std::array<uint8_t, kControlFrameHeaderBytes + kFrameNumbersBytes> make_head(
    const FrameNumbers& numbers, size_t message_bytes) {
  std::array<uint8_t, kControlFrameHeaderBytes + kFrameNumbersBytes> head{};
  const auto length = control_frame_header(kFrameNumbersBytes + message_bytes + kFrameTagBytes);
  std::copy(length.begin(), length.end(), head.begin());
  std::memcpy(&head[kControlFrameHeaderBytes], &numbers.sequence, sizeof(numbers.sequence));
  std::memcpy(&head[kControlFrameHeaderBytes + 8], &numbers.acknowledged,
              sizeof(numbers.acknowledged));
  return head;
}

}  // namespace

std::array<uint8_t, kFrameTagBytes> FrameSeal::next_tag(std::span<const uint8_t> head,
                                                        std::span<const uint8_t> message) {
  std::array<uint8_t, sizeof(frames_)> place{};
  std::memcpy(place.data(), &frames_, sizeof(frames_));
  ++frames_;
  const Sha256Digest digest = hmac_.digest({place, head, message});
  std::array<uint8_t, kFrameTagBytes> tag{};
  std::copy_n(digest.begin(), tag.size(), tag.begin());
  return tag;
}

FrameSeal::Sealed FrameSeal::seal(const FrameNumbers& numbers, std::span<const uint8_t> message) {
  const auto head = make_head(numbers, message.size());
  return {head, next_tag(head, message)};
}

Result<FrameSeal::Opened> FrameSeal::open(std::span<const uint8_t> frame) {
  if (frame.size() <= kFrameNumbersBytes + kFrameTagBytes)
    return make_status(StatusCode::Protocol, "a frame of {} bytes holds no message", frame.size());
  Opened opened;
  std::memcpy(&opened.numbers.sequence, frame.data(), sizeof(opened.numbers.sequence));
  std::memcpy(&opened.numbers.acknowledged, frame.data() + 8, sizeof(opened.numbers.acknowledged));
  opened.message =
      frame.subspan(kFrameNumbersBytes, frame.size() - kFrameNumbersBytes - kFrameTagBytes);
  const auto tag = next_tag(make_head(opened.numbers, opened.message.size()), opened.message);
  if (!equal_in_constant_time(tag, frame.last(kFrameTagBytes))) {
    return Status(StatusCode::PermissionDenied,
                  "a frame came that the peer has not sent, or not here: its tag is wrong");
  }
  return opened;
}

}  // namespace braid
