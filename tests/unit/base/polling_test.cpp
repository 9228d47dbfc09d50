// SPDX-License-Identifier: Apache-2.0
#include "base/polling.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(PollingMode, IsWrittenAsItIsRead) {
  for (const PollingMode mode : kPollingModes) EXPECT_EQ(parse_polling_mode(to_string(mode)), mode);
  EXPECT_EQ(parse_polling_mode("sometimes"), std::nullopt);
  EXPECT_EQ(parse_polling_mode(""), std::nullopt);
}

TEST(PollingPolicy, OffNeverAndAlwaysAlwaysPolls) {
  PollingPolicy off(PollingMode::Off);
  PollingPolicy always(PollingMode::Always);
  for (const PollOutcome outcome :
       {PollOutcome::Came, PollOutcome::NotCame, PollOutcome::NotCame, PollOutcome::Displaced}) {
    EXPECT_EQ(off.window_ns(kMs), 0u);
    EXPECT_EQ(always.window_ns(kMs), PollingPolicy::kAlwaysWindowNs);
    off.on_end(outcome, kMs);
    always.on_end(outcome, kMs);
  }
}

TEST(PollingPolicy, WhatNeverHelpsIsTriedMoreAndMoreSeldom) {
  PollingPolicy policy(PollingMode::Adaptive);
  policy.on_end(PollOutcome::NotCame, 0);
  EXPECT_EQ(policy.window_ns(0), PollingPolicy::kWindowNs) << "once is no rule";
  uint64_t now_ns = 0;
  for (const uint64_t pause_ms : {1, 2, 4, 8, 16, 32, 64, 64}) {
    policy.on_end(PollOutcome::NotCame, now_ns);
    EXPECT_EQ(policy.window_ns(now_ns + pause_ms * kMs - 1), 0u) << pause_ms;
    now_ns += pause_ms * kMs;
    EXPECT_EQ(policy.window_ns(now_ns), PollingPolicy::kWindowNs) << pause_ms;
  }
}

TEST(PollingPolicy, WhatHelpsAgainIsTriedEachTime) {
  PollingPolicy policy(PollingMode::Adaptive);
  for (int i = 0; i < 9; ++i) policy.on_end(PollOutcome::NotCame, 0);
  policy.on_end(PollOutcome::Came, 64 * kMs);
  policy.on_end(PollOutcome::NotCame, 65 * kMs);
  EXPECT_EQ(policy.window_ns(65 * kMs), PollingPolicy::kWindowNs);
  policy.on_end(PollOutcome::NotCame, 65 * kMs);
  EXPECT_EQ(policy.window_ns(66 * kMs - 1), 0u);
  EXPECT_EQ(policy.window_ns(66 * kMs), PollingPolicy::kWindowNs) << "the pauses begin anew";
}

TEST(PollingPolicy, WhoDisplacesAWaiterHasTheProcessorForASecondSoon) {
  PollingPolicy policy(PollingMode::Adaptive);
  uint64_t now_ns = 0;
  for (const uint64_t pause_ms : {8, 16, 32, 64, 128, 256, 512, 1000, 1000}) {
    policy.on_end(PollOutcome::Displaced, now_ns);
    EXPECT_EQ(policy.window_ns(now_ns + pause_ms * kMs - 1), 0u) << pause_ms;
    now_ns += pause_ms * kMs;
    EXPECT_NE(policy.window_ns(now_ns), 0u) << pause_ms;
  }
}

TEST(PollUntil, EndsWithWhatComesOrWithTheTime) {
  uint64_t now_ns = SystemClock().now_ns();
  const uint64_t begin_ns = now_ns;
  int looks = 0;
  PollOutcome outcome = PollOutcome::NotCame;
  while (outcome != PollOutcome::Came)  // others may want the processor meanwhile
    outcome = poll_until(UINT64_MAX, now_ns, [&] { return ++looks >= 5; });
  EXPECT_EQ(looks, 5);
  EXPECT_GE(now_ns, begin_ns);
  EXPECT_EQ(poll_until(begin_ns, now_ns, [] { return false; }), PollOutcome::NotCame);
  EXPECT_EQ(poll_until(begin_ns, now_ns, [] { return true; }), PollOutcome::Came)
      << "what is there is seen, however late it is";
}

}  // namespace
}  // namespace braid
