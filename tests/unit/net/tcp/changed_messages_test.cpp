// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/tcp/sealed_messages_testing.h"

namespace braid::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using How = ChunkIntake::How;
using Outcome = IncomingMessages::Outcome;

// Where each record begins, and where the last one ends.
std::vector<size_t> bounds_of(const Bytes& stream) {
  std::vector<size_t> bounds{0};
  while (bounds.back() < stream.size()) {
    uint32_t length = 0;
    std::memcpy(&length, stream.data() + bounds.back(), sizeof(length));
    bounds.push_back(bounds.back() + length + SealedRecord::kExtraBytes);
  }
  EXPECT_EQ(bounds.back(), stream.size());
  return bounds;
}

// A record with a right tag, the first one of its connection.
Bytes sealed(std::span<const uint8_t> plain) {
  Bytes record(plain.size() + SealedRecord::kExtraBytes);
  const auto length = static_cast<uint32_t>(plain.size());
  std::memcpy(record.data(), &length, sizeof(length));
  const std::array<std::span<const uint8_t>, 1> parts{plain};
  const auto all = std::span(record);
  EXPECT_TRUE(test_cipher().seal(all.first<4>(), parts, all.subspan(4, plain.size()),
                                 all.last<RecordCipher::kTagBytes>()));
  return record;
}

// Streams that were changed on their way: nothing but their beginning may come, then an error.
class ChangedMessages : public ::testing::TestWithParam<How> {
 protected:
  void expect_refused(const Bytes& changed, const char* what, size_t where) {
    for (const size_t cut : {changed.size(), size_t{5003}}) {
      SealedReceiver receiver({GetParam()});
      EXPECT_EQ(receiver.take(changed, cut), Outcome::Failed) << what << " at " << where;
      EXPECT_THAT(receiver.taker.failure.code(),
                  AnyOf(StatusCode::PermissionDenied, StatusCode::Protocol))
          << receiver.taker.failure.message();
      EXPECT_LT(receiver.taker.numbers.size(), sizes_.size()) << what << " at " << where;
      receiver.expect_first(sizes_);
    }
  }

  // A message in one record, one in several, and a last one without payload.
  const std::vector<uint32_t> sizes_{30, 2 * kRecord + 100, 0};
  const Bytes stream_ = stream_of(sizes_);
  const std::vector<size_t> bounds_ = bounds_of(stream_);
};
INSTANTIATE_TEST_SUITE_P(Ways, ChangedMessages,
                         ::testing::Values(How::Store, How::Fold, How::Whole));

TEST_P(ChangedMessages, AreRefusedWhicheverBitIsAnother) {
  for (size_t record = 0; record + 1 < bounds_.size(); ++record) {
    const size_t begin = bounds_[record];
    const size_t end = bounds_[record + 1];
    // All of the length and of the tag, and some of what is encrypted.
    for (size_t at = begin; at < end; at += at < begin + 8 || end - at <= 17 ? 1 : 997) {
      Bytes changed = stream_;
      changed[std::min(at, end - 1)] ^= static_cast<uint8_t>(1 << (at % 8));
      // A length that has grown may wait for bytes that never come.
      changed.resize(changed.size() + kRecord, 0);
      expect_refused(changed, "a bit", at);
    }
  }
}

TEST_P(ChangedMessages, AreRefusedWithoutARecordOrWithOneTwice) {
  const auto at = [&](size_t record) {
    return stream_.begin() + static_cast<ptrdiff_t>(bounds_[record]);
  };
  for (size_t record = 0; record + 2 < bounds_.size(); ++record) {
    Bytes without(stream_.begin(), at(record));
    without.insert(without.end(), at(record + 1), stream_.end());
    expect_refused(without, "no record", record);
    Bytes twice(stream_.begin(), at(record + 1));
    twice.insert(twice.end(), at(record), stream_.end());
    expect_refused(twice, "twice the record", record);
    Bytes swapped(stream_.begin(), at(record));
    swapped.insert(swapped.end(), at(record + 1), at(record + 2));
    swapped.insert(swapped.end(), at(record), at(record + 1));
    swapped.insert(swapped.end(), at(record + 2), stream_.end());
    expect_refused(swapped, "later the record", record);
  }
}

TEST_P(ChangedMessages, AreRefusedWithBytesLeftOutOrAdded) {
  for (size_t at = 0; at + 1 < stream_.size(); at += 1499) {
    Bytes changed = stream_;
    changed.erase(changed.begin() + static_cast<ptrdiff_t>(at));
    changed.resize(changed.size() + kRecord, 0);
    expect_refused(changed, "no byte", at);
    changed = stream_;
    changed.insert(changed.begin() + static_cast<ptrdiff_t>(at), changed[at] ^ 1);
    changed.resize(changed.size() + kRecord, 0);
    expect_refused(changed, "one byte more", at);
  }
}

TEST_P(ChangedMessages, ThatAreCutOffNeverCome) {
  for (size_t at = 0; at < stream_.size(); at += at < 200 ? 1 : 1999) {
    SealedReceiver receiver({GetParam()});
    if (at != 0) {
      EXPECT_EQ(receiver.take(std::span(stream_).first(at), at), Outcome::Drained);
    }
    receiver.sockets.writing.reset();
    EXPECT_EQ(receiver.read_all(), Outcome::Failed);
    EXPECT_THAT(receiver.taker.failure.message(), HasSubstr("closed the connection"));
    EXPECT_LT(receiver.taker.numbers.size(), sizes_.size());
    receiver.expect_first(sizes_);
  }
}

TEST(RefusedMessages, OfAnotherKeyAreRefused) {
  SealedSender sender(8);
  sender.push(0, 100);
  const Bytes stream = sender.stream();
  SealedReceiver receiver;
  EXPECT_EQ(receiver.take(stream, stream.size()), Outcome::Failed);
  EXPECT_EQ(receiver.taker.failure.code(), StatusCode::PermissionDenied);
  EXPECT_THAT(receiver.taker.failure.message(), HasSubstr("its tag is wrong"));
  EXPECT_TRUE(receiver.taker.numbers.empty());
}

TEST(RefusedMessages, InClearAreRefused) {
  Bytes stream = header_of(0, 100);
  const Bytes payload = payload_of(0, 100);
  stream.insert(stream.end(), payload.begin(), payload.end());
  SealedReceiver receiver;
  EXPECT_EQ(receiver.take(stream, stream.size()), Outcome::Failed);
  EXPECT_TRUE(receiver.taker.numbers.empty());
}

// Nothing is waited for, and no memory taken, by a length that nobody has vouched for.
TEST(RefusedMessages, LengthsThatNoRecordHasAreRefusedAtOnce) {
  for (const uint32_t length : {0u, 1u, kHeader - 1, kRecord + 1, 1u << 24, UINT32_MAX}) {
    Bytes bytes(sizeof(length));
    std::memcpy(bytes.data(), &length, sizeof(length));
    SealedReceiver receiver;
    EXPECT_EQ(receiver.take(bytes, 1), Outcome::Failed) << length;
    EXPECT_EQ(receiver.taker.failure.code(), StatusCode::Protocol);
    EXPECT_THAT(receiver.taker.failure.message(), HasSubstr("length"));
  }
  // Payload comes in records of one size.
  const Bytes stream = stream_of({kRecord + 100});
  Bytes shorter(stream.begin(), stream.begin() + kHeader + SealedRecord::kExtraBytes);
  const uint32_t length = kRecord - 1;
  shorter.resize(shorter.size() + sizeof(length));
  std::memcpy(&shorter[shorter.size() - sizeof(length)], &length, sizeof(length));
  SealedReceiver receiver;
  EXPECT_EQ(receiver.take(shorter, shorter.size()), Outcome::Failed);
  EXPECT_EQ(receiver.taker.failure.code(), StatusCode::Protocol);
}

// A daemon, which holds the key, may be broken.
TEST(RefusedMessages, RecordsThatDoNotHoldWhatTheirHeaderSaysAreRefused) {
  Bytes less = header_of(0, 100);
  less.resize(less.size() + 99);
  Bytes more = header_of(0, 100);
  more.resize(more.size() + 101);
  Bytes part = header_of(0, 2 * kRecord);
  part.resize(kRecord);
  for (const Bytes& plain : {less, more, part, header_of(0, 100)}) {
    SealedReceiver receiver;
    const Bytes stream = sealed(plain);
    EXPECT_EQ(receiver.take(stream, stream.size()), Outcome::Failed) << plain.size();
    EXPECT_EQ(receiver.taker.failure.code(), StatusCode::Protocol);
    EXPECT_TRUE(receiver.taker.numbers.empty());
  }
}

TEST(RefusedMessages, AHeaderThatIsNoneEndsTheChannel) {
  SealedSender sender;
  sender.push(0, 10);
  sender.push(MessageTaker::kNone, 10);
  sender.push(2, 10);
  const Bytes stream = sender.stream();
  SealedReceiver receiver;
  EXPECT_EQ(receiver.take(stream, stream.size()), Outcome::Failed);
  EXPECT_THAT(receiver.taker.failure.message(), HasSubstr("no message"));
  EXPECT_THAT(receiver.taker.numbers, ElementsAre(0u));
}

}  // namespace
}  // namespace braid::testing
