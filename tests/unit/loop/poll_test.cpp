// SPDX-License-Identifier: Apache-2.0
#include "loop/poll.h"

#include <sys/eventfd.h>

#include "base/fd.h"
#include "loop_testing.h"

namespace braid {
namespace {

class PollTest : public testing::LoopTest {
 protected:
  void signal() {
    const uint64_t one = 1;
    ASSERT_EQ(::write(event_.get(), &one, sizeof(one)), 8);
  }
  void clear() {
    uint64_t count = 0;
    ASSERT_EQ(::read(event_.get(), &count, sizeof(count)), 8);
  }

  Fd event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

TEST_F(PollTest, CallsBackWhenTheDescriptorIsReadable) {
  auto poll = Poll::create(*loop_, event_.get()).value();
  int calls = 0;
  poll->start(UV_READABLE, [&](int events) {
    EXPECT_EQ(events, UV_READABLE);
    ++calls;
    clear();
  });
  run_rounds();
  EXPECT_EQ(calls, 0);
  signal();
  run_until([&] { return calls > 0; });
  run_rounds();
  EXPECT_EQ(calls, 1);
}

TEST_F(PollTest, MayBeDestroyedInItsOwnCallback) {
  auto created = Poll::create(*loop_, event_.get());
  ASSERT_TRUE(created.is_ok());
  auto poll = std::move(created).value();
  int calls = 0;
  poll->start(UV_READABLE, [&, keep = std::make_shared<int>(7)](int) {
    poll.reset();
    calls += *keep;
  });
  signal();
  run_until([&] { return calls > 0; });
  run_rounds();
  EXPECT_EQ(calls, 7);
}

TEST_F(PollTest, StoppedItIsSilent) {
  auto poll = Poll::create(*loop_, event_.get()).value();
  int calls = 0;
  poll->start(UV_READABLE, [&](int) { ++calls; });
  poll->stop();
  signal();
  run_rounds();
  EXPECT_EQ(calls, 0);
}

TEST_F(PollTest, RefusesAFileThatCannotBeWatched) {
  const auto poll = Poll::create(*loop_, -1);
  ASSERT_FALSE(poll.is_ok());
  EXPECT_FALSE(poll.status().message().empty());
}

}  // namespace
}  // namespace braid
