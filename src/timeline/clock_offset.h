// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

// How far another node's monotonic clock is ahead of this one's, from questions and answers that
// carry times: Mills, "Internet time synchronization: the network time protocol" (IEEE
// Transactions on Communications, 1991), section III. Whatever the two ways take, the true offset
// lies within the error; the exchange with the shortest round trip has the smallest one.
class ClockOffset {
 public:
  static constexpr uint32_t kRounds = 5;

  // One exchange, in nanoseconds: asked and got by this node's clock, received and answered by the
  // other one's. Those in which time goes backwards are ignored.
  void add(uint64_t asked_ns, uint64_t received_ns, uint64_t answered_ns, uint64_t got_ns) {
    if (got_ns < asked_ns || answered_ns < received_ns) return;
    const uint64_t away_ns = got_ns - asked_ns, there_ns = answered_ns - received_ns;
    if (there_ns > away_ns) return;
    ++rounds_;
    // Half a nanosecond more, for both are rounded.
    const uint64_t error_ns = (away_ns - there_ns) / 2 + 1;
    if (rounds_ > 1 && error_ns >= error_ns_) return;
    error_ns_ = error_ns;
    // The differences may be of clocks that are years apart: halved before they are added.
    const auto out = static_cast<int64_t>(received_ns - asked_ns);
    const auto back = static_cast<int64_t>(answered_ns - got_ns);
    offset_ns_ = out / 2 + back / 2 + (out % 2 + back % 2) / 2;
  }

  uint32_t rounds() const { return rounds_; }
  // That were added to this node's time give the other one's.
  int64_t offset_ns() const { return offset_ns_; }
  uint64_t error_ns() const { return rounds_ == 0 ? UINT64_MAX : error_ns_; }

  // A time of this node's, by the other one's clock.
  uint64_t there(uint64_t here_ns) const { return here_ns + static_cast<uint64_t>(offset_ns_); }

 private:
  uint32_t rounds_ = 0;
  int64_t offset_ns_ = 0;
  uint64_t error_ns_ = 0;
};

}  // namespace braid
