// SPDX-License-Identifier: Apache-2.0
#include "base/job_turns.h"

#include <deque>
#include <map>

#include <gtest/gtest.h>

namespace braid {
namespace {

using Turns = JobTurns<std::deque<int>>;

// Gives so many turns of equal cost; how many each job had.
std::map<int, int> give(Turns& turns, int count, const std::map<int, uint32_t>& weights = {}) {
  std::map<int, int> had;
  for (int i = 0; i < count && turns.has_next(); ++i) {
    auto& queue = turns.begin_turn();
    const int job = queue.front();
    queue.pop_front();
    const auto weight = weights.find(job);
    turns.end_turn(100, weight == weights.end() ? 1 : weight->second);
    ++had[job];
  }
  return had;
}

void add(Turns& turns, int job, int count) {
  for (int i = 0; i < count; ++i) turns.queue_of(static_cast<uint64_t>(job)).push_back(job);
}

TEST(JobTurns, AJobDoesNotWaitBehindAnotherOnesBacklog) {
  Turns turns;
  add(turns, 1, 10'000);
  give(turns, 5'000);
  add(turns, 2, 1);
  EXPECT_EQ(give(turns, 2)[2], 1);
}

TEST(JobTurns, TurnsAreInProportionToWeights) {
  Turns turns;
  add(turns, 1, 1'000);
  add(turns, 2, 1'000);
  auto had = give(turns, 400, {{1, 1}, {2, 3}});
  EXPECT_NEAR(had[1], 100, 2);
  EXPECT_NEAR(had[2], 300, 2);
}

TEST(JobTurns, AJobThatWaitedForNothingSavesUpNothing) {
  Turns turns;
  add(turns, 1, 1);
  add(turns, 2, 2'000);
  give(turns, 1'000);
  add(turns, 1, 1'000);
  EXPECT_NEAR(give(turns, 200)[1], 100, 2);
}

TEST(JobTurns, WhatIsTakenOutOfAQueueHasNoTurn) {
  Turns turns;
  add(turns, 1, 10);
  EXPECT_EQ(turns.find(7), nullptr);
  turns.find(1)->clear();
  EXPECT_FALSE(turns.has_next());
}

TEST(JobTurns, OneThatIsPutAsideWaits) {
  Turns turns;
  add(turns, 1, 1);
  add(turns, 2, 1);
  turns.put_aside();
  EXPECT_EQ(turns.next_queue().front(), 2);
  turns.put_aside();
  EXPECT_FALSE(turns.has_next());
  turns.take_back_all();
  EXPECT_EQ(turns.next_queue().front(), 1);
}

}  // namespace
}  // namespace braid
