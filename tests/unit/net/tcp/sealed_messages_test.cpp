// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "net/flow_proof.h"
#include "net/tcp/sealed_messages_testing.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using How = ChunkIntake::How;
using Outcome = IncomingMessages::Outcome;

const std::vector<uint32_t> kSizes{0,
                                   1,
                                   63,
                                   kRecord - kHeader - 1,
                                   kRecord - kHeader,
                                   kRecord - kHeader + 1,
                                   kRecord - 1,
                                   kRecord,
                                   kRecord + 1,
                                   2 * kRecord - 1,
                                   2 * kRecord,
                                   2 * kRecord + 1,
                                   5,
                                   3'000'001,
                                   0};

TEST(SealedMessages, OfAllSizesComeThroughASocketThatIsOftenFull) {
  for (const How how : {How::Store, How::Fold, How::Whole}) {
    SealedReceiver receiver({how});
    const int room = 20'000;
    ::setsockopt(receiver.sockets.writing.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    SealedSender sender;
    push_all(sender, kSizes);
    int full = 0;
    while (sender.flush(receiver.sockets.writing) == OutgoingMessages::Outcome::Full) {
      ++full;
      ASSERT_EQ(receiver.read_all(), Outcome::Drained);
    }
    EXPECT_EQ(receiver.read_all(), Outcome::Drained);
    EXPECT_GT(full, 10);
    EXPECT_TRUE(sender.empty());
    EXPECT_EQ(sender.sent(), kSizes.size());
    receiver.expect_all(kSizes);
  }
}

TEST(SealedMessages, AreWholeWhereverTheStreamIsCut) {
  std::mt19937 random(7);
  std::vector<uint32_t> sizes;
  for (uint32_t number = 0; number < 200; ++number) {
    const std::array<uint32_t, 6> limits{1, 64, 300, 5000, 40'000, 200'000};
    sizes.push_back(std::uniform_int_distribution<uint32_t>(0, limits[random() % 6])(random));
  }
  const Bytes stream = stream_of(sizes);
  SealedReceiver receiver({How::Store, How::Fold, How::Whole});
  std::span<const uint8_t> left(stream);
  while (!left.empty()) {
    const std::array<size_t, 4> limits{3, 100, 20'000, 150'000};
    const size_t next = std::min(left.size(), 1 + random() % limits[random() % 4]);
    ASSERT_EQ(receiver.take(left.first(next), next), Outcome::Drained);
    left = left.subspan(next);
  }
  receiver.expect_all(sizes);
}

TEST(SealedMessages, MayComeByteByByte) {
  const std::vector<uint32_t> sizes{0, 17, kRecord, 3, kRecord + 65, 1};
  const Bytes stream = stream_of(sizes);
  for (const How how : {How::Store, How::Fold, How::Whole}) {
    SealedReceiver receiver({how});
    ASSERT_EQ(receiver.take(stream, 1), Outcome::Drained);
    receiver.expect_all(sizes);
  }
}

TEST(SealedMessages, ManySmallOnesComeByOneRead) {
  std::vector<uint32_t> sizes;
  for (uint32_t number = 0; number < 100; ++number) sizes.push_back(number * 3);
  SealedSender sender;
  push_all(sender, sizes);
  SealedReceiver receiver;
  EXPECT_EQ(sender.flush(receiver.sockets.writing), OutgoingMessages::Outcome::Empty);
  EXPECT_EQ(receiver.read_once(), Outcome::Drained);
  receiver.expect_all(sizes);
}

TEST(SealedMessages, AreBoundedWhileTheSocketIsFull) {
  SealedSender sender;
  const std::vector<uint32_t> sizes(300, 100'000);
  push_all(sender, sizes);
  SealedReceiver receiver({How::Store});
  EXPECT_EQ(sender.flush(receiver.sockets.writing), OutgoingMessages::Outcome::Full);
  const size_t sent = sender.sent();
  EXPECT_GT(sent, 0u) << "what is encrypted is the caller's again";
  EXPECT_LT(sent, sizes.size());
  EXPECT_EQ(sender.flush(receiver.sockets.writing), OutgoingMessages::Outcome::Full);
  EXPECT_EQ(sender.sent(), sent) << "more was encrypted than there is room for";
  while (sender.flush(receiver.sockets.writing) == OutgoingMessages::Outcome::Full) {
    ASSERT_EQ(receiver.read_all(), Outcome::Drained);
  }
  EXPECT_EQ(receiver.read_all(), Outcome::Drained);
  receiver.expect_all(sizes);
}

TEST(SealedMessages, ShowNothingOfWhatTheyHold) {
  const Bytes stream = stream_of({40'000});
  const auto shows = [&](const Bytes& bytes) {
    return !std::ranges::search(stream, std::span(bytes).first(24)).empty();
  };
  EXPECT_FALSE(shows(header_of(0, 40'000)));
  EXPECT_FALSE(shows(payload_of(0, 40'000)));
}

TEST(SealedMessages, FollowTheGreetingWhichIsInClear) {
  const Bytes greeting = payload_of(9, 64);
  SealedSender sender(7, greeting);
  EXPECT_FALSE(sender.empty());
  sender.push(0, 5);
  const Bytes stream = sender.stream();
  ASSERT_GT(stream.size(), greeting.size());
  EXPECT_TRUE(std::ranges::equal(std::span(stream).first(64), greeting));
  SealedReceiver receiver;
  EXPECT_EQ(receiver.take(std::span(stream).subspan(64), stream.size()), Outcome::Drained);
  receiver.expect_all({5});
}

TEST(SealedMessages, ThatNobodyWantsAnyMoreAreDroppedToTheirEnd) {
  const Bytes stream = stream_of({100'000, 50});
  for (const How how : {How::Store, How::Fold}) {
    SealedReceiver receiver({how});
    ASSERT_EQ(receiver.take(std::span(stream).first(30'001), 30'001), Outcome::Drained);
    receiver.taker.gone = 0;
    ASSERT_EQ(receiver.take(std::span(stream).subspan(30'001), stream.size()), Outcome::Drained);
    EXPECT_THAT(receiver.taker.dropped, ElementsAre(0u));
    EXPECT_THAT(receiver.taker.numbers, ElementsAre(1u));
    EXPECT_EQ(receiver.taker.payloads[0], payload_of(1, 50));
  }
}

TEST(SealedMessages, ABrokenConnectionIsAnErrorOfTheSender) {
  SealedSender sender;
  sender.push(0, 10);
  MessageSockets sockets;
  sockets.reading.reset();
  EXPECT_EQ(sender.flush(sockets.writing), OutgoingMessages::Outcome::Failed);
}

TEST(FlowRecordKeys, DifferForEachDirectionAndForAllSalts) {
  Sha256Digest key{};
  FlowSalts salts;
  std::vector<Sha256Digest> keys;
  const auto add_both = [&] {
    keys.push_back(flow_record_key(key, FlowProofOf::Connecting, salts));
    keys.push_back(flow_record_key(key, FlowProofOf::Listening, salts));
  };
  add_both();
  salts.own(FlowProofOf::Connecting)[0] ^= 1;
  add_both();
  key[0] ^= 1;
  add_both();
  salts.own(FlowProofOf::Listening)[0] ^= 1;
  keys.push_back(flow_record_key(key, FlowProofOf::Listening, salts));
  std::ranges::sort(keys);
  EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
  EXPECT_EQ(keys.size(), 7u);
}

}  // namespace
}  // namespace braid::testing
