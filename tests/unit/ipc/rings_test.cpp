// SPDX-License-Identifier: Apache-2.0
#include "ipc/rings.h"

#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "base/fd.h"
#include "proto/types.h"
#include "proto/version.h"

namespace braid {
namespace {

constexpr uint32_t kRingEntries = 8;

class RingsTest : public ::testing::Test {
 protected:
  RingsTest() : memory_(proto::rings_bytes(kRingEntries, kRingEntries) / sizeof(Line)) {
    view_ = create_rings(bytes(), kRingEntries, kRingEntries);
    attach();
  }
  void attach() {
    producer_ = {&view_.header->submit, view_.submit, kRingEntries};
    consumer_ = {&view_.header->submit, view_.submit, kRingEntries};
  }
  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(memory_.data()); }
  uint64_t size() const { return memory_.size() * sizeof(Line); }
  void push(uint64_t ticket) {
    proto::SubmitEntry entry{};
    entry.ticket = ticket;
    producer_.push(entry);
  }

  struct alignas(64) Line {
    uint8_t bytes[64];
  };
  std::vector<Line> memory_;
  RingsView view_;
  RingProducer<proto::SubmitEntry> producer_;
  RingConsumer<proto::SubmitEntry> consumer_;
};

TEST_F(RingsTest, FullIsSeenAndEndsWithTheNextPop) {
  for (uint64_t i = 0; i < kRingEntries; ++i) {
    ASSERT_EQ(producer_.state(), RingState::Ready);
    push(i);
  }
  EXPECT_EQ(producer_.state(), RingState::Full);
  proto::SubmitEntry entry{};
  ASSERT_EQ(consumer_.pop(entry), RingState::Ready);
  EXPECT_EQ(producer_.state(), RingState::Ready);
}

TEST_F(RingsTest, IndicesWrapAround) {
  const uint32_t start = std::numeric_limits<uint32_t>::max() - 3;
  view_.header->submit.tail = start;
  view_.header->submit.head = start;
  attach();
  proto::SubmitEntry entry{};
  for (uint64_t i = 0; i < 5 * kRingEntries; ++i) {
    ASSERT_EQ(producer_.state(), RingState::Ready);
    push(i);
    ASSERT_EQ(consumer_.pop(entry), RingState::Ready);
    ASSERT_EQ(entry.ticket, i);
    ASSERT_EQ(consumer_.pop(entry), RingState::Empty);
  }
}

TEST_F(RingsTest, ImpossibleIndicesOfTheOtherSideAreCorrupt) {
  proto::SubmitEntry entry{};
  view_.header->submit.tail = kRingEntries + 1;
  EXPECT_EQ(consumer_.pop(entry), RingState::Corrupt);
  view_.header->submit.tail = static_cast<uint32_t>(-1);
  EXPECT_EQ(consumer_.pop(entry), RingState::Corrupt);
  view_.header->submit.tail = 0;
  EXPECT_EQ(consumer_.pop(entry), RingState::Empty);

  view_.header->submit.head = 1;  // more was taken than was put in
  EXPECT_EQ(producer_.state(), RingState::Corrupt);
  view_.header->submit.head = 0;
  EXPECT_EQ(producer_.state(), RingState::Ready);
}

TEST_F(RingsTest, OwnIndexIsNotReadBack) {
  push(1);
  view_.header->submit.tail = 77;  // the other side scribbles over ours
  push(2);
  EXPECT_EQ(view_.header->submit.tail, 2u);
}

TEST_F(RingsTest, ASleepingConsumerIsWokenOnce) {
  EXPECT_FALSE(producer_.take_wake_duty());
  EXPECT_TRUE(consumer_.prepare_sleep());
  push(1);
  EXPECT_TRUE(producer_.take_wake_duty());
  push(2);
  EXPECT_FALSE(producer_.take_wake_duty());
  EXPECT_FALSE(consumer_.prepare_sleep()) << "there is something to pop";
  EXPECT_FALSE(producer_.take_wake_duty());
}

TEST_F(RingsTest, HeaderIsChecked) {
  EXPECT_TRUE(check_rings(bytes(), size(), kRingEntries, kRingEntries).is_ok());
  EXPECT_FALSE(check_rings(bytes(), size(), 2 * kRingEntries, kRingEntries).is_ok());
  EXPECT_FALSE(check_rings(bytes(), size() - 64, kRingEntries, kRingEntries).is_ok());
  EXPECT_FALSE(check_rings(bytes(), size(), 0, kRingEntries).is_ok());
  EXPECT_FALSE(check_rings(bytes(), size(), 7, kRingEntries).is_ok());
  EXPECT_FALSE(check_rings(bytes(), size(), kRingEntries, 2 * proto::kRingCapacityMax).is_ok());
  view_.header->version = proto::kClientProtocolVersion + 1;
  EXPECT_FALSE(check_rings(bytes(), size(), kRingEntries, kRingEntries).is_ok());
  view_.header->version = proto::kClientProtocolVersion;
  view_.header->magic ^= 1;
  EXPECT_FALSE(check_rings(bytes(), size(), kRingEntries, kRingEntries).is_ok());
  view_.header->magic ^= 1;
  view_.header->done_capacity = 2 * kRingEntries;
  EXPECT_FALSE(check_rings(bytes(), size(), kRingEntries, kRingEntries).is_ok());
}

TEST_F(RingsTest, WhatIsReservedInTheHeaderIsZero) {
  const auto refusal = [&] {
    return check_rings(bytes(), size(), kRingEntries, kRingEntries).status().message();
  };
  push(1);
  view_.header->submit.consumer_sleeps = 1;
  view_.header->done.head = 7;
  EXPECT_EQ(refusal(), "") << "fields are not reserved";
  // The first and the last byte of each gap of SPEC.md's table.
  for (const size_t at : {16, 63, 68, 127, 136, 191, 196, 255, 264, 319}) {
    bytes()[at] = 5;
    EXPECT_EQ(refusal(), "byte " + std::to_string(at) +
                             " of the rings' header is reserved and must be 0, not 5");
    bytes()[at] = 0;
  }
}

TEST(SubmitEntryTest, WhatIsReservedIsZero) {
  for (const auto kind : {proto::SubmitKind::Operation, proto::SubmitKind::Release}) {
    proto::SubmitEntry entry{};
    entry.kind = static_cast<uint8_t>(kind);
    entry.ticket = 1;
    entry.collective = static_cast<uint8_t>(Collective::Broadcast);
    entry.table = 1ull << 63;
    EXPECT_EQ(check_submit_entry(entry).message(),
              "'table' of a submission without a table is reserved and must be 0, not "
              "9223372036854775808");
    for (const Collective with_table : {Collective::AllToAll, Collective::AllReduce}) {
      entry.collective = static_cast<uint8_t>(with_table);
      EXPECT_EQ(check_submit_entry(entry).is_ok(), kind == proto::SubmitKind::Operation);
    }
  }
}

TEST(SubmitEntryTest, AMessageHasNoTensorAndNoTable) {
  for (const auto kind : {proto::SubmitKind::Send, proto::SubmitKind::Receive}) {
    proto::SubmitEntry entry{};
    entry.kind = static_cast<uint8_t>(kind);
    entry.ticket = 1;
    EXPECT_TRUE(check_submit_entry(entry));
    entry.tensor = 4;
    EXPECT_EQ(check_submit_entry(entry).message(),
              "'tensor' of a message is reserved and must be 0, not 4");
    entry.tensor = 0;
    entry.table = 8;
    EXPECT_FALSE(check_submit_entry(entry));
    entry.table = 0;
    entry.step = kStepNumberMax + 1;
    EXPECT_FALSE(check_submit_entry(entry));
  }
}

TEST(DoneEntryTest, WhatIsReservedIsZero) {
  proto::DoneEntry entry{};
  EXPECT_TRUE(check_done_entry(entry));
  entry.reserved = 7;
  EXPECT_EQ(check_done_entry(entry).message(),
            "'reserved' of a completion is reserved and must be 0, not 7");
}

TEST(SubmitEntryTest, EnumsAreChecked) {
  proto::SubmitEntry good{};
  good.kind = static_cast<uint8_t>(proto::SubmitKind::Operation);
  good.ticket = 1;
  EXPECT_TRUE(check_submit_entry(good));
  const auto is_refused = [&](auto change) {
    proto::SubmitEntry bad = good;
    change(bad);
    return !check_submit_entry(bad);
  };
  EXPECT_TRUE(is_refused([](auto& entry) { entry.kind = 0; }));
  EXPECT_TRUE(is_refused([](auto& entry) { entry.kind = 5; }));
  EXPECT_TRUE(is_refused([](auto& entry) { entry.ticket = 0; }));
  EXPECT_TRUE(is_refused([](auto& entry) { entry.step = kStepNumberMax + 1; }));
  EXPECT_FALSE(is_refused([](auto& entry) { entry.step = kStepNumberMax; }));
  EXPECT_TRUE(is_refused([](auto& entry) { entry.collective = kCollectiveCount; }));
  EXPECT_TRUE(is_refused([](auto& entry) { entry.dtype = kDataTypeCount; }));
  EXPECT_TRUE(is_refused([](auto& entry) { entry.reduction = kReductionCount; }));
  // A release has its ticket read alone.
  EXPECT_FALSE(is_refused([](auto& entry) {
    entry.kind = static_cast<uint8_t>(proto::SubmitKind::Release);
    entry.dtype = 200;
  }));
}

TEST(EventfdTest, OnlyEventfdsAreTaken) {
  const Fd event(::eventfd(0, EFD_CLOEXEC));
  EXPECT_TRUE(check_eventfd(event.get(), "wake-up"));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  EXPECT_FALSE(check_eventfd(write_end.get(), "wake-up"));
  EXPECT_FALSE(check_eventfd(-1, "wake-up"));
}

// Both sides sleep and wake through the whole protocol; a lost wake-up would hang, which the poll's
// limit turns into a failure.
TEST_F(RingsTest, TwoThreadsHammerWithSleepAndWake) {
  constexpr uint64_t kEntries = 20'000;
  constexpr int kPatienceMs = 20'000;
  const Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::thread producer([&] {
    for (uint64_t i = 1; i <= kEntries;) {
      if (producer_.state() == RingState::Ready) {
        push(i++);
        if (producer_.take_wake_duty()) signal_eventfd(wake.get());
      } else {
        std::this_thread::yield();
      }
    }
  });
  uint64_t expected = 1;
  bool in_time = true;
  proto::SubmitEntry entry{};
  while (expected <= kEntries && in_time) {
    switch (consumer_.pop(entry)) {
      case RingState::Ready:
        in_time = entry.ticket == expected++;
        break;
      case RingState::Empty:
        if (consumer_.prepare_sleep()) {
          pollfd poll{wake.get(), POLLIN, 0};
          in_time = ::poll(&poll, 1, kPatienceMs) == 1;
          drain_eventfd(wake.get());
        }
        break;
      case RingState::Full:
      case RingState::Corrupt:
        in_time = false;
    }
  }
  EXPECT_TRUE(in_time) << "stuck or wrong at entry " << expected;
  if (!in_time)
    view_.header->submit.head = static_cast<uint32_t>(kEntries);  // lets the producer end
  EXPECT_EQ(expected, kEntries + 1);
  producer.join();
}

}  // namespace
}  // namespace braid
