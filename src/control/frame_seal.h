// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/hmac.h"
#include "base/record_cipher.h"
#include "base/status.h"
#include "control/control_frame_reader.h"

namespace braid {

// What stands in front of a message after the handshake: see PeerSession.
struct FrameNumbers {
  uint64_t sequence = 0;      // of the message; 0: it has none and is not sent again
  uint64_t acknowledged = 0;  // the sender has taken all messages up to this one
};
inline constexpr size_t kFrameNumbersBytes = 16;
inline constexpr size_t kFrameTagBytes = 16;
inline constexpr size_t kFrameOverheadBytes =
    kControlFrameHeaderBytes + kFrameNumbersBytes + kFrameTagBytes;

// What protects frames. Authenticated: their messages travel in clear.
enum class FrameProtection : uint8_t { Authenticated, Encrypted };

// Protects the frames of one direction of one connection: each carries a tag that only who has the
// key can make, and that fits this frame at this place alone, so none can be changed, left out,
// repeated or put elsewhere. proto/SPEC.md has the bytes.
class FrameSeal {
 public:
  FrameSeal(const Sha256Digest& key, FrameProtection protection);

  struct Sealed {
    std::array<uint8_t, kControlFrameHeaderBytes + kFrameNumbersBytes> head;
    std::span<const uint8_t> message;  // what was given, or encrypted: until the next call
    std::array<uint8_t, kFrameTagBytes> tag;
  };
  // The next frame's three parts. An error: OpenSSL's, nothing may be sent.
  Result<Sealed> seal(const FrameNumbers& numbers, std::span<const uint8_t> message);

  struct Opened {
    FrameNumbers numbers;
    std::span<const uint8_t> message;  // in the bytes that were given, which are decrypted there
  };
  // The next frame that came, without its length. Protocol: too short. PermissionDenied: its
  // sender has not the key, or it was changed on the way.
  Result<Opened> open(std::span<uint8_t> frame);

 private:
  std::array<uint8_t, kFrameTagBytes> next_tag(std::span<const uint8_t> head,
                                               std::span<const uint8_t> message);

  HmacSha256 hmac_;
  uint64_t frames_ = 0;
  std::optional<RecordCipher> cipher_;  // Encrypted: instead of the two above
  std::vector<uint8_t> encrypted_;      // the latest message
};

}  // namespace braid
