// SPDX-License-Identifier: Apache-2.0
#include "control/peer_liveness.h"

#include <algorithm>

namespace braid {
namespace {

// A peer that has not answered for so many heartbeats may be lost soon, or may lose us: nothing new
// is begun with it before that is known. In good times an answer is up to two of them old.
constexpr uint32_t kUnansweredHeartbeatsMax = 4;
// So many heartbeats without a word, and a new connection is tried: TCP sends again later and later
// while a network is gone, and may take as long again once it is back.
constexpr uint32_t kMissedHeartbeatsMax = 3;

}  // namespace

void PeerLiveness::on_connected(uint64_t now_ms) {
  heard_at_ms_ = now_ms;
  answered_at_ms_ = now_ms;
  moved_at_ms_ = now_ms;
}

void PeerLiveness::on_heartbeat(uint64_t sent_ms, uint64_t answered_ms, uint64_t now_ms) {
  to_answer_ms_ = sent_ms;
  answered_at_ms_ = std::max(answered_at_ms_, std::min(answered_ms, now_ms));
}

// Bytes that come, and bytes of a message that the peer's kernel acknowledges, show that the
// network works: a new connection would only begin a long message once more. What this node's
// kernel has taken shows nothing: it holds megabytes, the work of seconds on a slow path.
// Heartbeats and their answers wait behind such a message; one that comes and answers nothing new
// means that ours are lost.
void PeerLiveness::look(uint64_t received_bytes, bool is_taken, uint64_t stood_still_ms,
                        uint64_t now_ms) {
  heard_at_ms_ = std::min(heard_at_ms_ + stood_still_ms, now_ms);
  moved_at_ms_ += stood_still_ms;
  const bool has_come = received_bytes > received_bytes_;
  const bool has_spoken = to_answer_ms_ != noted_to_answer_ms_;
  const bool has_answered = answered_at_ms_ > noted_answered_at_ms_;
  if (has_come) heard_at_ms_ = now_ms;
  if (is_taken || (has_come && (!has_spoken || has_answered || !is_in_doubt(now_ms))))
    moved_at_ms_ = now_ms;
  received_bytes_ = received_bytes;
  noted_to_answer_ms_ = to_answer_ms_;
  noted_answered_at_ms_ = answered_at_ms_;
}

bool PeerLiveness::is_in_doubt(uint64_t now_ms) const {
  return now_ms > answered_at_ms_ + uint64_t{kUnansweredHeartbeatsMax} * heartbeat_interval_ms_;
}

bool PeerLiveness::is_still(uint64_t now_ms) const {
  return now_ms > moved_at_ms_ + uint64_t{kMissedHeartbeatsMax} * heartbeat_interval_ms_;
}

}  // namespace braid
