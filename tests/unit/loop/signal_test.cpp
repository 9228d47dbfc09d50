// SPDX-License-Identifier: Apache-2.0
#include "loop/signal.h"

#include <csignal>

#include "loop_testing.h"

namespace braid {
namespace {

class SignalTest : public testing::LoopTest {};

TEST_F(SignalTest, CallsBackOnTheLoop) {
  int calls = 0;
  Signal signal(*loop_, SIGUSR1, [&] {
    ++calls;
    EXPECT_TRUE(loop_->is_in_loop());
    loop_->stop();
  });
  ASSERT_EQ(::raise(SIGUSR1), 0);
  EXPECT_EQ(calls, 0);
  run();
  EXPECT_EQ(calls, 1);
}

TEST_F(SignalTest, EachHearsItsOwn) {
  int first = 0;
  int second = 0;
  Signal one(*loop_, SIGUSR1, [&] { ++first; });
  Signal two(*loop_, SIGUSR2, [&] { ++second; });
  ASSERT_EQ(::raise(SIGUSR2), 0);
  run_until([&] { return second == 1; });
  EXPECT_EQ(first, 0);
}

}  // namespace
}  // namespace braid
