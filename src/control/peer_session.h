// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/status.h"
#include "control/frame_seal.h"

namespace braid {

// What is known of the messages between this node and a peer, whichever connections carry them:
// each message has a number, 1, 2, 3, … in each direction, and is kept until the peer says that it
// has taken it. After a connection broke, all that is kept goes out again on the next one, and what
// comes twice is dropped. So messages arrive once and in order, though connections come and go.
class PeerSession {
 public:
  // Beyond this much that came, an acknowledgement is sent by itself.
  static constexpr size_t kUnacknowledgedBytesMax = 1u << 20;

  explicit PeerSession(size_t kept_bytes_max) : kept_bytes_max_(kept_bytes_max) {}

  struct Kept {
    uint64_t sequence = 0;
    std::vector<uint8_t> message;
  };
  // The next message to the peer, until it is acknowledged. ResourceExhausted: too much is kept.
  Result<uint64_t> keep(std::span<const uint8_t> message);
  const std::deque<Kept>& kept() const { return kept_; }  // oldest first
  size_t kept_bytes() const { return kept_bytes_; }       // with what frames add

  // The numbers of a frame that came. True: its message is to be taken now. False: it is no news,
  // or has no number. Protocol: messages are missing before it, or it acknowledges what was not
  // sent.
  Result<bool> receive(const FrameNumbers& numbers, size_t message_bytes);

  // What the next frame to the peer says.
  uint64_t acknowledge();
  bool owes_acknowledgement() const { return unacknowledged_bytes_ >= kUnacknowledgedBytesMax; }

 private:
  const size_t kept_bytes_max_;
  uint64_t sent_ = 0;
  std::deque<Kept> kept_;
  size_t kept_bytes_ = 0;
  uint64_t received_ = 0;
  size_t unacknowledged_bytes_ = 0;  // that came since the peer was told
};

}  // namespace braid
