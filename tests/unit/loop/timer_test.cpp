// SPDX-License-Identifier: Apache-2.0
#include "loop/timer.h"

#include <memory>
#include <string>

#include "loop_testing.h"

namespace braid {
namespace {

class TimerTest : public testing::LoopTest {};

TEST_F(TimerTest, FiresOnce) {
  int calls = 0;
  Timer timer(*loop_);
  timer.start_once(0, [&] { ++calls; });
  EXPECT_TRUE(timer.is_active());
  run_until([&] { return calls > 0; });
  run_rounds();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(timer.is_active());
}

TEST_F(TimerTest, RepeatsUntilItIsStoppedInItsOwnCallback) {
  int calls = 0;
  Timer timer(*loop_);
  timer.start_repeating(1, [&] {
    if (++calls < 3) return;
    timer.stop();
    loop_->stop();
  });
  run();
  EXPECT_EQ(calls, 3);
  EXPECT_FALSE(timer.is_active());
}

TEST_F(TimerTest, AStoppedTimerNeverFires) {
  bool fired = false;
  Timer stopped(*loop_);
  Timer end(*loop_);
  stopped.start_once(0, [&] { fired = true; });
  stopped.stop();
  {
    Timer destroyed(*loop_);
    destroyed.start_once(0, [&] { fired = true; });
  }
  end.start_once(5, [&] { loop_->stop(); });
  run();
  EXPECT_FALSE(fired);
}

TEST_F(TimerTest, MayBeDestroyedInItsOwnCallback) {
  // On the heap, as the callback is: the sanitizers see it if either is touched when it is gone.
  const std::string text(100, 'x');
  std::string seen;
  auto timer = std::make_unique<Timer>(*loop_);
  timer->start_repeating(1, [&timer, &seen, text, this] {
    timer.reset();
    seen = text;  // the callback itself must still be there
    loop_->stop();
  });
  run();
  EXPECT_EQ(seen, text);
  EXPECT_EQ(timer, nullptr);
}

TEST_F(TimerTest, MayBeStartedAnewInItsOwnCallback) {
  const std::string text(100, 'x');
  std::string seen;
  Timer timer(*loop_);
  timer.start_once(0, [&timer, &seen, text, this] {
    timer.start_once(0, [this] { loop_->stop(); });
    seen = text;
  });
  run();
  EXPECT_EQ(seen, text);
}

TEST_F(TimerTest, StartingReplacesTheCallback) {
  int first = 0;
  int second = 0;
  Timer timer(*loop_);
  timer.start_once(0, [&] { ++first; });
  timer.start_once(0, [&] {
    ++second;
    loop_->stop();
  });
  run();
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
}

}  // namespace
}  // namespace braid
