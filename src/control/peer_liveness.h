// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

// Whether a peer lives, and whether it hears this node: concluded from what came, from the answers
// to this node's heartbeats, and from the movement of bytes. A value, without a thread or clock of
// its own: times are this node's, in ms.
class PeerLiveness {
 public:
  explicit PeerLiveness(uint32_t heartbeat_interval_ms)
      : heartbeat_interval_ms_(heartbeat_interval_ms) {}

  void on_connected(uint64_t now_ms);  // a handshake goes there and back
  void on_heard(uint64_t now_ms) { heard_at_ms_ = now_ms; }
  // `sent_ms` is by the peer's clock, `answered_ms` what our latest heartbeat that it got carried.
  void on_heartbeat(uint64_t sent_ms, uint64_t answered_ms, uint64_t now_ms);
  uint64_t to_answer_ms() const { return to_answer_ms_; }  // for our next heartbeat

  // Once per heartbeat. `received_bytes` came on the connections that exist now, `is_taken`: the
  // peer's kernel has acknowledged more of our messages since the last time. `stood_still_ms`: so
  // long this process itself did nothing, and what the peer sent meanwhile waits unread.
  void look(uint64_t received_bytes, bool is_taken, uint64_t stood_still_ms, uint64_t now_ms);

  uint64_t heard_at_ms() const { return heard_at_ms_; }
  // It may not hear us, and lose us in the middle of what we begin with it.
  bool is_in_doubt(uint64_t now_ms) const;
  // Nothing moves: a new connection may.
  bool is_still(uint64_t now_ms) const;

 private:
  uint32_t heartbeat_interval_ms_;
  uint64_t heard_at_ms_ = 0;
  uint64_t answered_at_ms_ = 0;  // when the latest heartbeat of ours was sent that it has answered
  uint64_t to_answer_ms_ = 0;    // what its latest heartbeat carried
  uint64_t moved_at_ms_ = 0;     // when bytes last came or went; what was known at that look:
  uint64_t received_bytes_ = 0;
  uint64_t noted_to_answer_ms_ = 0;
  uint64_t noted_answered_at_ms_ = 0;
};

}  // namespace braid
