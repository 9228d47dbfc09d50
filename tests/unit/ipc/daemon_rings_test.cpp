// SPDX-License-Identifier: Apache-2.0
#include "ipc/daemon_rings.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "loop/timer.h"
#include "loop_runner.h"

namespace braid {
namespace {

constexpr uint32_t kCapacity = 16;

class DaemonRingsTest : public ::testing::Test {
 protected:
  DaemonRingsTest() {
    loop_ = Loop::create("test").value();
    const uint64_t bytes = proto::rings_bytes(kCapacity, kCapacity);
    auto memory = SharedMemory::create("rings", bytes, SharedMemory::Access::ReadWrite);
    EXPECT_TRUE(memory) << memory.status().message();
    memory_ = std::move(*memory);
    std::fill_n(memory_.data(), bytes, uint8_t{0});
    view_ = create_rings(memory_.data(), kCapacity, kCapacity);
    submit_ = {&view_.header->submit, view_.submit, kCapacity};
    done_ = {&view_.header->done, view_.done, kCapacity};
    submit_wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }

  static Fd duplicate(int fd) { return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

  Result<std::unique_ptr<DaemonRings>> adopt(uint32_t submit_capacity = kCapacity) {
    return DaemonRings::adopt(duplicate(memory_.fd()), duplicate(submit_wake_.get()),
                              submit_capacity, kCapacity);
  }

  void submit(uint64_t ticket) {
    proto::SubmitEntry entry{};
    entry.kind = static_cast<uint8_t>(proto::SubmitKind::Operation);
    entry.ticket = ticket;
    ASSERT_EQ(submit_.state(), RingState::Ready);
    submit_.push(entry);
    if (submit_.take_wake_duty()) signal_eventfd(submit_wake_.get());
  }

  void take_all() {
    proto::SubmitEntry entry{};
    while (*rings_->pop(entry)) tickets_.push_back(entry.ticket);
  }
  static bool is_readable(const Fd& fd) {
    pollfd poll{fd.get(), POLLIN, 0};
    return ::poll(&poll, 1, 0) == 1;
  }

  std::unique_ptr<Loop> loop_;
  SharedMemory memory_;
  RingsView view_;
  RingProducer<proto::SubmitEntry> submit_;
  RingConsumer<proto::DoneEntry> done_;
  Fd submit_wake_;
  std::unique_ptr<DaemonRings> rings_;
  std::vector<uint64_t> tickets_;  // that take_all() has taken
};

TEST_F(DaemonRingsTest, SubmissionsArriveOnTheLoop) {
  submit(1);  // before anybody listens
  rings_ = adopt().value();
  int calls = 0;
  ASSERT_TRUE(rings_->start(*loop_, [&] {
    ++calls;
    take_all();
  }));
  EXPECT_TRUE(run_until(*loop_, [&] { return tickets_ == std::vector<uint64_t>{1}; }));
  submit(2);
  submit(3);
  EXPECT_TRUE(run_until(*loop_, [&] { return tickets_ == std::vector<uint64_t>{1, 2, 3}; }));
  const int calls_so_far = calls;
  run_rounds(*loop_);
  EXPECT_EQ(calls, calls_so_far) << "an idle ring must not keep the loop busy";
}

TEST_F(DaemonRingsTest, APollingLoopNeedsNoWakeUp) {
  loop_->polling().set_mode(PollingMode::Always);
  rings_ = adopt().value();
  bool wakes = false;
  ASSERT_TRUE(rings_->start(*loop_, [&] { take_all(); }));
  // From a callback, which runs between two polls: the ring sleeps then.
  Timer publish(*loop_);
  uint64_t next = 1;
  publish.start_repeating(1, [&] {
    if (next > 3) return;
    wakes = wakes || is_readable(submit_wake_);
    proto::SubmitEntry entry{};
    entry.kind = static_cast<uint8_t>(proto::SubmitKind::Operation);
    entry.ticket = next++;
    submit_.push(entry);
  });
  EXPECT_TRUE(run_until(*loop_, [&] { return tickets_ == std::vector<uint64_t>{1, 2, 3}; }));
  EXPECT_FALSE(wakes);
  rings_->stop();
  loop_->polling().set_mode(PollingMode::Off);
  EXPECT_TRUE(view_.header->submit.consumer_sleeps.load() != 0) << "it must be woken from now on";
}

TEST_F(DaemonRingsTest, TheDaemonSaysWhetherTheClientMayPoll) {
  rings_ = adopt().value();
  const RingConsumer<proto::DoneEntry> done(&view_.header->done, view_.done, kCapacity);
  EXPECT_FALSE(done.may_poll());
  rings_->let_client_poll(true);
  EXPECT_TRUE(done.may_poll());
  rings_->let_client_poll(false);
  EXPECT_FALSE(done.may_poll());
}

TEST_F(DaemonRingsTest, AfterAnErrorAPollingLoopDoesNotComeBackToTheRing) {
  loop_->polling().set_mode(PollingMode::Always);
  rings_ = adopt().value();
  int errors = 0;
  ASSERT_TRUE(rings_->start(*loop_, [&] {
    proto::SubmitEntry entry{};
    if (!rings_->pop(entry)) ++errors;
  }));
  Timer tick(*loop_);  // ends polls
  int ticks = 0;
  tick.start_repeating(1, [&] { ++ticks; });
  view_.header->submit.tail.store(kCapacity + 1);
  EXPECT_TRUE(run_until(*loop_, [&] { return errors > 0; }));
  const int so_far = ticks;
  EXPECT_TRUE(run_until(*loop_, [&] { return ticks >= so_far + 5; }));
  EXPECT_EQ(errors, 1);
  rings_->stop();
}

TEST_F(DaemonRingsTest, WhatTheCallbackLeavesComesAgain) {
  rings_ = adopt().value();
  ASSERT_TRUE(rings_->start(*loop_, [&] {
    proto::SubmitEntry entry{};
    if (*rings_->pop(entry)) tickets_.push_back(entry.ticket);
  }));
  for (uint64_t i = 1; i <= 5; ++i) submit(i);
  EXPECT_TRUE(run_until(*loop_, [&] { return tickets_.size() == 5; }));
}

TEST_F(DaemonRingsTest, TheCallbackMayDestroyTheRings) {
  rings_ = adopt().value();
  ASSERT_TRUE(rings_->start(*loop_, [&] { rings_.reset(); }));
  EXPECT_TRUE(run_until(*loop_, [&] { return rings_ == nullptr; }));
  run_rounds(*loop_);
}

TEST_F(DaemonRingsTest, StopEndsTheCallbacks) {
  rings_ = adopt().value();
  int calls = 0;
  ASSERT_TRUE(rings_->start(*loop_, [&] {
    ++calls;
    rings_->stop();
  }));
  EXPECT_TRUE(run_until(*loop_, [&] { return calls == 1; }));
  signal_eventfd(submit_wake_.get());
  run_rounds(*loop_);
  EXPECT_EQ(calls, 1);
}

// As a trainer that leaves right after a wrong submission.
TEST_F(DaemonRingsTest, WhatIsStoppedIsNotServedAgain) {
  rings_ = adopt().value();
  int calls = 0;
  ASSERT_TRUE(rings_->start(*loop_, [&] { ++calls; }));
  rings_->stop();
  submit(1);
  rings_->serve_again();
  run_rounds(*loop_);
  EXPECT_EQ(calls, 0);
}

TEST_F(DaemonRingsTest, CorruptIndicesAndEntriesAreProtocolErrors) {
  rings_ = adopt().value();
  proto::SubmitEntry entry{};
  view_.header->submit.tail = kCapacity + 5;
  auto popped = rings_->pop(entry);
  ASSERT_FALSE(popped.is_ok());
  EXPECT_EQ(popped.status().code(), StatusCode::Protocol);
  view_.header->submit.tail = 0;

  proto::SubmitEntry bad{};
  submit_.push(bad);
  popped = rings_->pop(entry);
  ASSERT_FALSE(popped.is_ok());
  EXPECT_EQ(popped.status().code(), StatusCode::Protocol);

  view_.header->done.head = 5;
  EXPECT_EQ(rings_->push_done({1, 0, 0, 0, 0}).code(), StatusCode::Protocol);
}

TEST_F(DaemonRingsTest, CompletionsWakeASleeperOnce) {
  rings_ = adopt().value();
  ASSERT_TRUE(rings_->push_done({7, 64, 128, 0, 0}).is_ok());
  rings_->wake_client();
  const Fd done_wake = rings_->take_done_wake();
  EXPECT_FALSE(is_readable(done_wake)) << "nobody sleeps";
  proto::DoneEntry entry{};
  ASSERT_EQ(done_.pop(entry), RingState::Ready);
  EXPECT_EQ(entry.ticket, 7u);
  EXPECT_EQ(entry.result_offset, 64u);
  EXPECT_EQ(entry.result_bytes, 128u);
  ASSERT_TRUE(done_.prepare_sleep());
  ASSERT_TRUE(rings_->push_done({8, 0, 0, 0, 0}).is_ok());
  rings_->wake_client();
  EXPECT_TRUE(is_readable(done_wake));
  drain_wakes(done_wake.get());
  EXPECT_FALSE(is_readable(done_wake));
}

// An eventfd's count and its flags are anybody's who shares it.
TEST_F(DaemonRingsTest, ACountThatStaysDoesNotKeepTheLoopBusy) {
  submit_wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));  // blocking, too
  rings_ = adopt().value();
  int calls = 0;
  ASSERT_TRUE(rings_->start(*loop_, [&] {
    ++calls;
    take_all();
  }));
  EXPECT_TRUE(run_until(*loop_, [&] { return calls == 1; }));
  EXPECT_EQ(::eventfd_write(submit_wake_.get(), 1'000'000), 0);
  EXPECT_TRUE(run_until(*loop_, [&] { return calls == 2; }));
  run_rounds(*loop_, 50);
  EXPECT_EQ(calls, 2) << "one write is one wake-up";
  submit(7);
  EXPECT_TRUE(run_until(*loop_, [&] { return tickets_ == std::vector<uint64_t>{7}; }));
}

TEST_F(DaemonRingsTest, WakingATrainerThatDoesNotListenNeverBlocks) {
  rings_ = adopt().value();
  Fd done_wake = rings_->take_done_wake();
  ASSERT_EQ(::fcntl(done_wake.get(), F_SETFL, 0), 0);  // blocking
  for (int i = 0; i < 100'000; ++i) {
    view_.header->done.consumer_sleeps = 1;
    rings_->wake_client();
  }
  EXPECT_TRUE(is_readable(done_wake));
  // Nothing can be put into the daemon's end, neither bytes nor descriptors.
  const uint8_t byte = 0;
  EXPECT_EQ(::send(done_wake.get(), &byte, 1, MSG_NOSIGNAL), -1);
  EXPECT_EQ(errno, EPIPE);
  done_wake.reset();
  view_.header->done.consumer_sleeps = 1;
  rings_->wake_client();
}

// As libbraid makes them.
TEST_F(DaemonRingsTest, RingsThatAreThereNeverLinger) {
  EXPECT_FALSE(adopt().value()->may_linger());
}

TEST_F(DaemonRingsTest, RingsWithHolesMayLinger) {
  constexpr uint32_t kMany = 4096;
  const uint64_t bytes = proto::rings_bytes(kMany, kMany);
  auto memory = SharedMemory::create("rings", bytes, SharedMemory::Access::ReadWrite).value();
  create_rings(memory.data(), kMany, kMany);
  rings_ = DaemonRings::adopt(duplicate(memory.fd()), duplicate(submit_wake_.get()), kMany, kMany)
               .value();
  EXPECT_TRUE(rings_->may_linger());
}

TEST_F(DaemonRingsTest, RingsThatMayGetHolesMayLinger) {
  ASSERT_EQ(::fcntl(memory_.fd(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  EXPECT_TRUE(adopt().value()->may_linger());
}

TEST_F(DaemonRingsTest, AFullDoneRingIsAnError) {
  rings_ = adopt().value();
  for (uint64_t i = 1; i <= kCapacity; ++i) ASSERT_TRUE(rings_->push_done({i, 0, 0, 0, 0}).is_ok());
  EXPECT_EQ(rings_->push_done({99, 0, 0, 0, 0}).code(), StatusCode::ResourceExhausted);
}

TEST_F(DaemonRingsTest, AdoptRefusesWhatDoesNotFit) {
  EXPECT_FALSE(adopt(2 * kCapacity).is_ok());
  EXPECT_FALSE(adopt(0).is_ok());
  EXPECT_FALSE(adopt(3).is_ok());
  EXPECT_FALSE(DaemonRings::adopt(duplicate(memory_.fd()), Fd(), kCapacity, kCapacity).is_ok());
  EXPECT_FALSE(
      DaemonRings::adopt(duplicate(memory_.fd()), duplicate(memory_.fd()), kCapacity, kCapacity)
          .is_ok());
  EXPECT_FALSE(DaemonRings::adopt(duplicate(submit_wake_.get()), duplicate(submit_wake_.get()),
                                  kCapacity, kCapacity)
                   .is_ok());
}

}  // namespace
}  // namespace braid
