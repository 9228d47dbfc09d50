// SPDX-License-Identifier: Apache-2.0
#include "loop/loop_polling.h"

#include <thread>

#include "loop/door.h"
#include "loop_testing.h"

namespace braid {
namespace {

class FakeRing final : public Pollable {
 public:
  void begin_polling() override { ++begun; }
  bool has_something() const override { return is_filled; }
  void end_polling() override { ++ended; }

  bool is_filled = false;
  int begun = 0;
  int ended = 0;
};

class LoopPollingTest : public testing::LoopTest {
 protected:
  ~LoopPollingTest() override {
    if (is_added_) polling().remove(ring_);
  }
  LoopPollingTest() { run_rounds(1); }  // libuv itself has something to do in a loop's first round
  LoopPolling& polling() { return loop_->polling(); }
  void add_ring(PollingMode mode) {
    polling().set_mode(mode);
    polling().add(ring_);
    is_added_ = true;
  }
  void work_once() {
    polling().note_work();
    run_rounds(1);
  }

  FakeRing ring_;
  bool is_added_ = false;
};

TEST_F(LoopPollingTest, APollFollowsARoundWithWork) {
  add_ring(PollingMode::Adaptive);
  run_rounds(1);
  EXPECT_EQ(ring_.begun, 0) << "nothing was done";
  work_once();
  EXPECT_EQ(ring_.begun, 1);
  EXPECT_EQ(ring_.ended, 1);
  run_rounds(1);
  EXPECT_EQ(ring_.begun, 1) << "once for each such round";
  const PollingCounters counters = polling().counters();
  EXPECT_EQ(counters.came, 0u);
  EXPECT_EQ(counters.not_came + counters.displaced, 1u);
}

TEST_F(LoopPollingTest, WhatIsThereEndsIt) {
  ring_.is_filled = true;
  add_ring(PollingMode::Adaptive);
  for (int i = 0; i < 100; ++i) work_once();
  EXPECT_EQ(polling().counters().came, 100u) << "and it is tried again each time";
}

TEST_F(LoopPollingTest, SwitchedOffNothingIsLookedAt) {
  add_ring(PollingMode::Off);
  work_once();
  EXPECT_EQ(ring_.begun, 0);
  EXPECT_EQ(polling().counters().polled_ns, 0u);
}

TEST_F(LoopPollingTest, AdaptiveWaitsForAJobThatPolls) {
  PollingJobs jobs;
  ring_.is_filled = true;  // each poll ends well, also on busy cores
  add_ring(PollingMode::Adaptive);
  polling().set_mode(PollingMode::Adaptive, &jobs);
  work_once();
  EXPECT_EQ(ring_.begun, 0);
  jobs.add();
  jobs.add();
  work_once();
  EXPECT_EQ(ring_.begun, 1);
  jobs.remove();
  work_once();
  EXPECT_EQ(ring_.begun, 2) << "another one does";
  jobs.remove();
  work_once();
  EXPECT_EQ(ring_.begun, 2);
}

TEST_F(LoopPollingTest, TooManyRingsWakeTheLoopAsIfItSlept) {
  std::vector<FakeRing> rings(LoopPolling::kPollablesMax + 1);
  polling().set_mode(PollingMode::Adaptive);
  for (FakeRing& ring : rings) polling().add(ring);
  work_once();
  EXPECT_EQ(rings.front().begun, 0);
  EXPECT_EQ(polling().counters().not_came + polling().counters().displaced, 1u)
      << "what the kernel announces is looked for all the same";
  polling().remove(rings.back());
  // Whether two polls in vain make a pause is not what is asked here.
  polling().set_mode(PollingMode::Adaptive);
  work_once();
  EXPECT_EQ(rings.front().begun, 1);
  for (FakeRing& ring : rings) polling().remove(ring);
}

TEST_F(LoopPollingTest, WorkThatIsStillToBeDoneGoesFirst) {
  add_ring(PollingMode::Adaptive);
  bool was_run = false;
  loop_->defer([&] {
    was_run = true;
    EXPECT_EQ(ring_.begun, 0);
  });
  work_once();
  EXPECT_TRUE(was_run);
}

TEST_F(LoopPollingTest, AlwaysAnswersToOtherThreadsAndToTimers) {
  FakeRing ring;
  polling().set_mode(PollingMode::Always);
  polling().add(ring);
  int got = 0;
  Door<int> door(*loop_, 10, [&](int&) { ++got; });
  std::thread other([&] {
    for (int i = 0; i < 10; ++i) door.send(i);
  });
  run_until([&] { return got == 10; });  // looks by a timer
  other.join();
  EXPECT_GT(ring.begun, 0);
  EXPECT_EQ(ring.begun, ring.ended);
  polling().remove(ring);
  run_rounds(1);  // it may sleep again, and this round ends
}

}  // namespace
}  // namespace braid
