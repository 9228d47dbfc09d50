// SPDX-License-Identifier: Apache-2.0
#include "net/delivery_rate.h"

#include <deque>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kChunkBytes = 128'000;
constexpr uint64_t kMillisecond = 1'000'000;

// A path of a fixed rate and a way there and back, with `window` chunks on it.
class DeliveryRateTest : public ::testing::Test {
 protected:
  struct Sent {
    DeliveryRate::Mark mark;
    uint64_t acknowledged_at_ns;
  };

  void send(uint64_t bytes = kChunkBytes) {
    const uint64_t start_ns = std::max(now_ns_, line_free_ns_);
    line_free_ns_ = start_ns + bytes * 1'000'000'000 / bytes_per_second_;
    sent_.push_back({rate_.on_sent(now_ns_, sent_.empty()), line_free_ns_ + round_trip_ns_});
    bytes_ = bytes;
  }
  void receive() {
    now_ns_ = std::max(now_ns_, sent_.front().acknowledged_at_ns);
    rate_.on_delivered(bytes_, sent_.front().mark, now_ns_);
    sent_.pop_front();
  }
  void stream(int chunks, size_t window) {
    for (int i = 0; i < chunks; ++i) {
      while (sent_.size() < window) send();
      receive();
    }
  }

  DeliveryRate rate_;
  uint64_t bytes_per_second_ = 60'000'000;
  uint64_t round_trip_ns_ = kMillisecond / 2;
  uint64_t now_ns_ = 3'600'000 * kMillisecond;
  uint64_t line_free_ns_ = 0;
  uint64_t bytes_ = 0;
  std::deque<Sent> sent_;
};

TEST_F(DeliveryRateTest, IsNotKnownAtFirst) {
  EXPECT_EQ(rate_.bytes_per_second(now_ns_), 0);
  stream(2, 2);
  EXPECT_EQ(rate_.bytes_per_second(now_ns_), 0) << "two samples are none";
}

TEST_F(DeliveryRateTest, FindsTheRateOfAFlowThatIsKeptBusy) {
  stream(50, 4);
  EXPECT_NEAR(rate_.bytes_per_second(now_ns_), 60e6, 2e6);
}

TEST_F(DeliveryRateTest, FollowsAChange) {
  stream(50, 4);
  bytes_per_second_ = 6'000'000;
  stream(50, 4);
  EXPECT_NEAR(rate_.bytes_per_second(now_ns_), 6e6, 0.5e6);
}

TEST_F(DeliveryRateTest, ChunksThatWereAloneTellNothing) {
  stream(50, 1);
  EXPECT_EQ(rate_.bytes_per_second(now_ns_), 0);
  stream(50, 4);
  const double known = rate_.bytes_per_second(now_ns_);
  while (!sent_.empty()) receive();
  for (int i = 0; i < 50; ++i) {
    now_ns_ += 20 * kMillisecond;  // pauses make no flow slow
    send();
    receive();
  }
  EXPECT_NEAR(rate_.bytes_per_second(now_ns_), known, 2e6);
}

TEST_F(DeliveryRateTest, LittleTellsNothing) {
  for (int i = 0; i < 50; ++i) {
    send(1000);
    send(1000);
    receive();
    receive();
  }
  EXPECT_EQ(rate_.bytes_per_second(now_ns_), 0);
}

// Four chunks go out one by one, and are all acknowledged at once.
TEST_F(DeliveryRateTest, AcknowledgementsInABunchMakeNoFlowFast) {
  stream(20, 4);
  for (int i = 0; i < 50; ++i) {
    while (sent_.size() < 4) {
      send();
      now_ns_ += kChunkBytes * 1'000'000'000 / bytes_per_second_;
    }
    now_ns_ = sent_.back().acknowledged_at_ns;
    const DeliveryRate::Mark last = sent_.back().mark;
    sent_.clear();
    rate_.on_delivered(4 * kChunkBytes, last, now_ns_);
  }
  EXPECT_LT(rate_.bytes_per_second(now_ns_), 70e6);
}

TEST_F(DeliveryRateTest, IsForgottenWithTime) {
  stream(50, 4);
  EXPECT_GT(rate_.bytes_per_second(now_ns_ + 4'000 * kMillisecond), 0);
  EXPECT_EQ(rate_.bytes_per_second(now_ns_ + 6'000 * kMillisecond), 0);
}

}  // namespace
}  // namespace braid
