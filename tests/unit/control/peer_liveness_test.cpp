// SPDX-License-Identifier: Apache-2.0
#include "control/peer_liveness.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

// A heartbeat each 100 ms; connected at 1000. Four without an answer are a doubt, and three in
// which nothing moves are a standstill.
class PeerLivenessTest : public ::testing::Test {
 protected:
  PeerLivenessTest() { peer_.on_connected(1000); }

  bool is_in_doubt_after(uint64_t ms) const {
    return !peer_.is_in_doubt(ms) && peer_.is_in_doubt(ms + 1);
  }
  bool is_still_after(uint64_t ms) const { return !peer_.is_still(ms) && peer_.is_still(ms + 1); }

  PeerLiveness peer_{100};
};

TEST_F(PeerLivenessTest, AConnectionIsHeardAnsweredAndMoving) {
  EXPECT_EQ(peer_.heard_at_ms(), 1000u);
  EXPECT_TRUE(is_in_doubt_after(1400));
  EXPECT_TRUE(is_still_after(1300));
}

TEST_F(PeerLivenessTest, AnAnswerEndsTheDoubtFromWhenItsQuestionWasSent) {
  peer_.on_heartbeat(7, 1200, 1350);
  EXPECT_EQ(peer_.to_answer_ms(), 7u);
  EXPECT_TRUE(is_in_doubt_after(1600));
  peer_.on_heartbeat(8, 1100, 1360);  // to an older one
  EXPECT_TRUE(is_in_doubt_after(1600));
  peer_.on_heartbeat(9, 1'000'000, 1400);  // to none that was sent
  EXPECT_TRUE(is_in_doubt_after(1800));
}

TEST_F(PeerLivenessTest, BytesThatComeAndBytesThatThePeerTakesAreMovement) {
  peer_.look(50, false, 0, 1200);
  EXPECT_EQ(peer_.heard_at_ms(), 1200u);
  EXPECT_TRUE(is_still_after(1500));
  peer_.look(50, true, 0, 1300);
  EXPECT_EQ(peer_.heard_at_ms(), 1200u);
  EXPECT_TRUE(is_still_after(1600));
  peer_.look(50, false, 0, 1400);
  EXPECT_TRUE(is_still_after(1600)) << "nothing came, and nothing went";
}

// Ours are lost on the way, so only a new connection brings them there.
TEST_F(PeerLivenessTest, HeartbeatsThatAnswerNothingNewAreNoMovementOnceThereIsADoubt) {
  peer_.on_heartbeat(7, 1000, 1300);
  peer_.look(50, false, 0, 1300);
  EXPECT_TRUE(is_still_after(1600)) << "the answer may be on its way";
  peer_.on_heartbeat(8, 1000, 1500);
  peer_.look(100, false, 0, 1500);
  EXPECT_EQ(peer_.heard_at_ms(), 1500u);
  EXPECT_TRUE(is_still_after(1600));
  peer_.on_heartbeat(9, 1200, 1650);
  peer_.look(150, false, 0, 1650);
  EXPECT_TRUE(is_still_after(1950)) << "it has answered a later one";
  peer_.look(200, false, 0, 1700);
  EXPECT_TRUE(is_still_after(2000)) << "a part of a long message, without a heartbeat";
}

TEST_F(PeerLivenessTest, WhileThisProcessStoodStillThePeerWasNotSilent) {
  peer_.look(0, false, 5000, 6200);
  EXPECT_EQ(peer_.heard_at_ms(), 6000u);
  EXPECT_TRUE(is_still_after(6300));
  peer_.look(0, false, 500, 6300);
  EXPECT_EQ(peer_.heard_at_ms(), 6300u) << "never later than now";
}

}  // namespace
}  // namespace braid
