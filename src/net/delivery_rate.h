// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace braid {

// How fast a flow can deliver, from its acknowledgements: of a chunk, how much was delivered
// between its sending and its acknowledgement (draft-cheng-iccrg-delivery-rate-estimation, section
// 3); the moving mean of the last few. A flow that was given little tells nothing. Not thread-safe.
class DeliveryRate {
 public:
  // What stood when a chunk was sent.
  struct Mark {
    uint64_t delivered_bytes = 0;
    uint64_t delivered_at_ns = 0;
    uint64_t first_sent_at_ns = 0;
    uint64_t sent_at_ns = 0;
    bool was_alone = false;
  };

  // 0: not known, or not any more.
  double bytes_per_second(uint64_t now_ns) const {
    return samples_ < kSamplesMin || now_ns - sampled_at_ns_ > kForgottenNs ? 0 : mean_;
  }

  // `is_alone`: the flow has nothing else on its way.
  Mark on_sent(uint64_t now_ns, bool is_alone) {
    if (is_alone) {
      delivered_at_ns_ = now_ns;
      first_sent_at_ns_ = now_ns;
    }
    return {delivered_bytes_, delivered_at_ns_, first_sent_at_ns_, now_ns, is_alone};
  }

  // `bytes` were acknowledged; the last chunk of them had `mark`.
  void on_delivered(uint64_t bytes, const Mark& mark, uint64_t now_ns) {
    delivered_bytes_ += bytes;
    delivered_at_ns_ = now_ns;
    first_sent_at_ns_ = mark.sent_at_ns;
    // The longer of the two: acknowledgements that come in a bunch make no flow fast.
    const uint64_t elapsed_ns =
        std::max(now_ns - mark.delivered_at_ns, mark.sent_at_ns - mark.first_sent_at_ns);
    const uint64_t delivered = delivered_bytes_ - mark.delivered_bytes;
    if (mark.was_alone || delivered < kTellingBytes || elapsed_ns == 0) return;
    const double sample = static_cast<double>(delivered) * 1e9 / static_cast<double>(elapsed_ns);
    if (now_ns - sampled_at_ns_ > kForgottenNs) samples_ = 0;
    ++samples_;
    mean_ += (sample - mean_) / static_cast<double>(std::min(samples_, kSamplesOfMean));
    sampled_at_ns_ = now_ns;
  }

 private:
  // Against which the time until the other node has woken up counts little.
  static constexpr uint64_t kTellingBytes = 96 << 10;
  static constexpr uint64_t kForgottenNs = 5'000'000'000;
  static constexpr uint64_t kSamplesMin = 4;
  static constexpr uint64_t kSamplesOfMean = 8;

  double mean_ = 0;
  uint64_t samples_ = 0;
  uint64_t sampled_at_ns_ = 0;
  uint64_t delivered_bytes_ = 0;
  uint64_t delivered_at_ns_ = 0;
  uint64_t first_sent_at_ns_ = 0;
};

}  // namespace braid
