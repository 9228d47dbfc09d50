// SPDX-License-Identifier: Apache-2.0
#include "control/peer_session.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

const std::vector<uint8_t> kMessage(100, 7);

TEST(PeerSession, KeepsMessagesUntilTheyAreAcknowledged) {
  PeerSession session(1 << 20);
  for (uint64_t i = 1; i <= 5; ++i) EXPECT_EQ(session.keep(kMessage).value(), i);
  EXPECT_EQ(session.kept_bytes(), 5 * (kMessage.size() + kFrameOverheadBytes));
  ASSERT_TRUE(session.receive({0, 3}, 10).is_ok());
  ASSERT_EQ(session.kept().size(), 2u);
  EXPECT_EQ(session.kept().front().sequence, 4u);
  EXPECT_EQ(session.kept().front().message, kMessage);
  ASSERT_TRUE(session.receive({0, 1}, 10).is_ok()) << "an older frame on an older connection";
  EXPECT_EQ(session.kept().size(), 2u);
  ASSERT_TRUE(session.receive({0, 5}, 10).is_ok());
  EXPECT_TRUE(session.kept().empty());
  EXPECT_EQ(session.kept_bytes(), 0u);
}

TEST(PeerSession, KeepsNoMoreThanItMay) {
  PeerSession session(2 * (kMessage.size() + kFrameOverheadBytes));
  EXPECT_TRUE(session.keep(kMessage).is_ok());
  EXPECT_TRUE(session.keep(kMessage).is_ok());
  EXPECT_EQ(session.keep(kMessage).status().code(), StatusCode::ResourceExhausted);
  ASSERT_TRUE(session.receive({0, 1}, 10).is_ok());
  EXPECT_EQ(session.keep(kMessage).value(), 3u) << "what was refused has no number";
}

TEST(PeerSession, TakesEachMessageOnceAndInOrder) {
  PeerSession session(1 << 20);
  EXPECT_TRUE(session.receive({1, 0}, 10).value());
  EXPECT_FALSE(session.receive({1, 0}, 10).value());
  EXPECT_TRUE(session.receive({2, 0}, 10).value());
  EXPECT_FALSE(session.receive({0, 0}, 10).value());
  EXPECT_EQ(session.receive({4, 0}, 10).status().code(), StatusCode::Protocol);
  EXPECT_TRUE(session.receive({3, 0}, 10).value());
  EXPECT_EQ(session.acknowledge(), 3u);
}

TEST(PeerSession, RefusesAcknowledgementsOfWhatWasNotSent) {
  PeerSession session(1 << 20);
  EXPECT_EQ(session.receive({1, 1}, 10).status().code(), StatusCode::Protocol);
  ASSERT_TRUE(session.keep(kMessage).is_ok());
  EXPECT_TRUE(session.receive({1, 1}, 10).value());
}

TEST(PeerSession, OwesAnAcknowledgementWhenMuchHasCome) {
  PeerSession session(1 << 20);
  EXPECT_TRUE(session.receive({1, 0}, PeerSession::kUnacknowledgedBytesMax - 1).value());
  EXPECT_FALSE(session.owes_acknowledgement());
  EXPECT_TRUE(session.receive({2, 0}, 1).value());
  EXPECT_TRUE(session.owes_acknowledgement());
  EXPECT_EQ(session.acknowledge(), 2u);
  EXPECT_FALSE(session.owes_acknowledgement());
}

}  // namespace
}  // namespace braid
