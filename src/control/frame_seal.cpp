// SPDX-License-Identifier: Apache-2.0
#include "control/frame_seal.h"

#include <algorithm>
#include <cstring>

namespace braid {
namespace {

static_assert(kFrameTagBytes == RecordCipher::kTagBytes);
constexpr size_t kEncryptedBytesKept = 64 << 10;  // a rare large message's memory is given back

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

FrameSeal::FrameSeal(const Sha256Digest& key, FrameProtection protection) : hmac_(key) {
  if (protection == FrameProtection::Encrypted) cipher_.emplace(key);
}

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

Result<FrameSeal::Sealed> FrameSeal::seal(const FrameNumbers& numbers,
                                          std::span<const uint8_t> message) {
  Sealed sealed{make_head(numbers, message.size()), message, {}};
  if (!cipher_) {
    sealed.tag = next_tag(sealed.head, message);
    return sealed;
  }
  if (encrypted_.capacity() > kEncryptedBytesKept) encrypted_ = {};
  encrypted_.resize(message.size());
  BRAID_RETURN_IF_ERROR(cipher_->seal(sealed.head, std::span(&message, 1), encrypted_, sealed.tag));
  sealed.message = encrypted_;
  return sealed;
}

Result<FrameSeal::Opened> FrameSeal::open(std::span<uint8_t> frame) {
  if (frame.size() <= kFrameNumbersBytes + kFrameTagBytes)
    return make_status(StatusCode::Protocol, "a frame of {} bytes holds no message", frame.size());
  Opened opened;
  std::memcpy(&opened.numbers.sequence, frame.data(), sizeof(opened.numbers.sequence));
  std::memcpy(&opened.numbers.acknowledged, frame.data() + 8, sizeof(opened.numbers.acknowledged));
  const std::span<uint8_t> message =
      frame.subspan(kFrameNumbersBytes, frame.size() - kFrameNumbersBytes - kFrameTagBytes);
  opened.message = message;
  const auto head = make_head(opened.numbers, message.size());
  if (cipher_) {
    BRAID_RETURN_IF_ERROR(cipher_->open(head, message, frame.last<kFrameTagBytes>(), message));
    return opened;
  }
  const auto tag = next_tag(head, message);
  if (!equal_in_constant_time(tag, frame.last(kFrameTagBytes))) {
    return Status(StatusCode::PermissionDenied,
                  "a frame came that the peer has not sent, or not here: its tag is wrong");
  }
  return opened;
}

}  // namespace braid
