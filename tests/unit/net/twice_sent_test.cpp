// SPDX-License-Identifier: Apache-2.0
#include "net/twice_sent.h"

#include <array>

#include "transport_testing.h"

namespace braid::testing {
namespace {

class TwiceSentTest : public ::testing::Test {
 protected:
  TwiceSentTest()
      : source_(std::make_shared<RecordingSource>(16)),
        twice_(std::make_shared<TwiceSent>(RecordingSource::chunk(source_, 7))),
        first_(twice_->first()),
        second_(twice_->second()) {}

  void settle(const OutgoingChunk& copy, bool acknowledged) {
    copy.source->on_chunk_settled(copy, acknowledged);
  }

  std::shared_ptr<RecordingSource> source_;
  std::shared_ptr<TwiceSent> twice_;
  OutgoingChunk first_;
  OutgoingChunk second_;
};

using Times = std::map<uint64_t, int>;

TEST_F(TwiceSentTest, CopiesTravelAsTheChunkItself) {
  EXPECT_EQ(first_.header.step, 7u);
  EXPECT_EQ(second_.header.step, 7u);
  EXPECT_TRUE(first_.is_repeated && !second_.is_repeated);
  EXPECT_EQ(twice_->payload_of(second_).size(), 16u);
}

TEST_F(TwiceSentTest, TheSecondCopyMayBeAcknowledgedFirst) {
  settle(second_, true);
  EXPECT_EQ(source_->settled, (Times{{7, 1}}));
  settle(first_, true);
  EXPECT_EQ(source_->settled, (Times{{7, 1}}));
  EXPECT_TRUE(source_->not_settled.empty());
}

TEST_F(TwiceSentTest, TheSourceIsLetGoOfWithTheSecondCopy) {
  settle(second_, true);
  EXPECT_EQ(source_.use_count(), 1) << "the first copy's flow may be stuck for long";
}

TEST_F(TwiceSentTest, TheBytesAreHeldUntilTheSecondCopyLetsGo) {
  settle(first_, true);
  EXPECT_TRUE(source_->settled.empty());
  settle(second_, true);
  EXPECT_EQ(source_->settled, (Times{{7, 1}}));
}

TEST_F(TwiceSentTest, AFirstCopyWhoseFlowDiesIsNotSentAgain) {
  EXPECT_TRUE(twice_->payload_of(first_).empty());
  settle(first_, false);
  EXPECT_TRUE(source_->settled.empty() && source_->not_settled.empty());
  settle(second_, true);
  EXPECT_EQ(source_->settled, (Times{{7, 1}}));
}

TEST_F(TwiceSentTest, ASecondCopyWhoseFlowDiesIsSentAgainUnlessTheFirstCameThrough) {
  EXPECT_FALSE(twice_->payload_of(second_).empty());
  settle(first_, true);
  EXPECT_TRUE(twice_->payload_of(second_).empty());
  settle(second_, false);
  EXPECT_EQ(source_->settled, (Times{{7, 1}}));
  EXPECT_TRUE(source_->not_settled.empty());
}

TEST_F(TwiceSentTest, ALinkThatGoesSettlesItOnce) {
  settle(first_, false);
  settle(second_, false);
  EXPECT_EQ(source_->not_settled, (Times{{7, 1}}));
  EXPECT_TRUE(source_->settled.empty());
}

TEST_F(TwiceSentTest, AThirdCopyEndsItWhicheverIsAcknowledged) {
  for (const auto acknowledged : {0, 1, 2}) {
    const auto source = std::make_shared<RecordingSource>(16);
    const auto twice = std::make_shared<TwiceSent>(RecordingSource::chunk(source, 7));
    const auto again = std::make_shared<TwiceSent>(twice->second());
    const std::array copies{twice->first(), again->first(), again->second()};
    EXPECT_FALSE(again->payload_of(copies[2]).empty());
    settle(copies[static_cast<size_t>(acknowledged)], true);
    if (acknowledged != 2) {
      EXPECT_TRUE(again->payload_of(copies[2]).empty());
      settle(copies[2], false);
    }
    EXPECT_EQ(source->settled, (Times{{7, 1}})) << "copy " << acknowledged;
    EXPECT_TRUE(source->not_settled.empty());
  }
}

TEST_F(TwiceSentTest, AnOperationThatIsOverGivesNoBytes) {
  source_->is_over = true;
  EXPECT_TRUE(twice_->payload_of(second_).empty());
}

}  // namespace
}  // namespace braid::testing
