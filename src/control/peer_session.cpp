// SPDX-License-Identifier: Apache-2.0
#include "control/peer_session.h"

namespace braid {

Result<uint64_t> PeerSession::keep(std::span<const uint8_t> message) {
  const size_t bytes = message.size() + kFrameOverheadBytes;
  if (bytes > kept_bytes_max_ || kept_bytes_ > kept_bytes_max_ - bytes) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} bytes of messages wait to be taken already (most: {})", kept_bytes_,
                       kept_bytes_max_);
  }
  kept_bytes_ += bytes;
  kept_.push_back({++sent_, {message.begin(), message.end()}});
  return sent_;
}

Result<bool> PeerSession::receive(const FrameNumbers& numbers, size_t message_bytes) {
  if (numbers.acknowledged > sent_) {
    return make_status(StatusCode::Protocol, "it acknowledges message {}, and {} were sent",
                       numbers.acknowledged, sent_);
  }
  while (!kept_.empty() && kept_.front().sequence <= numbers.acknowledged) {
    kept_bytes_ -= kept_.front().message.size() + kFrameOverheadBytes;
    kept_.pop_front();
  }
  if (numbers.sequence > received_ + 1) {
    return make_status(StatusCode::Protocol, "message {} came where {} was due", numbers.sequence,
                       received_ + 1);
  }
  if (numbers.sequence <= received_) return false;
  received_ = numbers.sequence;
  unacknowledged_bytes_ += message_bytes;
  return true;
}

uint64_t PeerSession::acknowledge() {
  unacknowledged_bytes_ = 0;
  return received_;
}

}  // namespace braid
