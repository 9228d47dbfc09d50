// SPDX-License-Identifier: Apache-2.0
#include "net/silent_flows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kMs = 1'000'000;

// A link of four flows, looked at again and again.
class SilentFlowsTest : public ::testing::Test {
 protected:
  SilentFlowsTest() : flows_(4) {
    for (FlowWait& flow : flows_) flow.is_open = true;
    look();
  }

  std::vector<size_t> look() {
    now_ns_ += SilentFlows::kLookEveryMs * kMs;
    const auto silent = silent_.look(flows_, now_ns_);
    return {silent.begin(), silent.end()};
  }
  void send(size_t flow) { flows_[flow].waiting_since_ns = now_ns_; }
  // Something was acknowledged just now, and that was all.
  void hear(size_t flow) {
    flows_[flow].heard_at_ns = now_ns_ + 1;
    flows_[flow].waiting_since_ns = 0;
  }
  // At which look, from the next one on, the first flow is given up; `others_are_heard` before.
  uint64_t looks_until_one_is_given_up(bool others_are_heard) {
    for (uint64_t looks = 1; looks < 1000; ++looks) {
      if (others_are_heard) hear(3);
      if (!look().empty()) return looks;
    }
    return 0;
  }

  uint64_t now_ns_ = 1'000'000 * kMs;
  std::vector<FlowWait> flows_;
  SilentFlows silent_;
};

TEST_F(SilentFlowsTest, AFlowThatWaitsWhileOthersAreHeardIsGivenUp) {
  send(1);
  for (uint64_t i = 1; i < SilentFlows::kLooksMin; ++i) {
    hear(0);
    ASSERT_THAT(look(), IsEmpty()) << i;
  }
  hear(0);
  EXPECT_THAT(look(), ElementsAre(1));
}

TEST_F(SilentFlowsTest, AFlowWithALongRoundTripHasMoreTime) {
  flows_[1].round_trip_ns = 300 * kMs;
  send(1);
  EXPECT_EQ(looks_until_one_is_given_up(true), 24u);
}

TEST_F(SilentFlowsTest, NoRoundTripMakesItMinutes) {
  flows_[1].round_trip_ns = 60'000 * kMs;
  send(1);
  EXPECT_EQ(looks_until_one_is_given_up(true), SilentFlows::kLooksMax);
}

TEST_F(SilentFlowsTest, AFlowThatIsHeardNowAndThenStays) {
  for (int i = 0; i < 500; ++i) {
    if (i % 5 == 0) {
      hear(1);
      flows_[1].waiting_since_ns = flows_[1].heard_at_ns;  // more is on its way
    }
    hear(0);
    ASSERT_THAT(look(), IsEmpty()) << i;
  }
}

TEST_F(SilentFlowsTest, AFlowWithNothingOnItsWayStays) {
  for (int i = 0; i < 500; ++i) {
    hear(0);
    ASSERT_THAT(look(), IsEmpty()) << i;
  }
  EXPECT_FALSE(silent_.wants_proof());
}

TEST_F(SilentFlowsTest, ANodeThatStandsStillIsNoSilentFlow) {
  for (size_t flow = 0; flow < 4; ++flow) send(flow);
  for (uint64_t i = 1; i < SilentFlows::kLooksOfAll; ++i) ASSERT_THAT(look(), IsEmpty()) << i;
  // It goes on: one flow is heard a little before the others.
  hear(0);
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(SilentFlowsTest, WhileOneWaitsTheOthersAreToBeAsked) {
  EXPECT_FALSE(silent_.wants_proof());
  send(2);
  look();
  EXPECT_TRUE(silent_.wants_proof());
  hear(2);
  look();
  EXPECT_FALSE(silent_.wants_proof());
}

TEST_F(SilentFlowsTest, WhereNoneIsHeardTheOneThatWaitsLongestIsTriedAnew) {
  send(2);
  look();
  send(0);
  send(1);
  for (uint64_t i = 2; i < SilentFlows::kLooksOfAll; ++i) ASSERT_THAT(look(), IsEmpty()) << i;
  EXPECT_THAT(look(), ElementsAre(2));
}

TEST_F(SilentFlowsTest, AndAllIfThatDoesNotHelp) {
  for (size_t flow = 0; flow < 3; ++flow) send(flow);
  EXPECT_EQ(looks_until_one_is_given_up(false), SilentFlows::kLooksOfAll);
  flows_[0] = {};
  for (uint64_t i = 1; i < SilentFlows::kLooksOfAll; ++i) ASSERT_THAT(look(), IsEmpty()) << i;
  EXPECT_THAT(look(), ElementsAre(1, 2));
}

TEST_F(SilentFlowsTest, IfItHelpsTheOthersAreGivenUpSoon) {
  for (size_t flow = 0; flow < 3; ++flow) send(flow);
  looks_until_one_is_given_up(false);
  uint64_t looks = 0;
  std::vector<size_t> silent;
  while (silent.empty() && looks < 100) {
    hear(0);
    silent = look();
    ++looks;
  }
  EXPECT_THAT(silent, ElementsAre(1, 2));
  EXPECT_EQ(looks, SilentFlows::kLooksMin);
}

TEST_F(SilentFlowsTest, AFlowThatIsNotOpenIsNeitherSilentNorAProof) {
  send(1);
  flows_[0].is_open = false;
  for (uint64_t i = 1; i < SilentFlows::kLooksOfAll; ++i) {
    hear(0);
    ASSERT_THAT(look(), IsEmpty()) << i;
  }
  EXPECT_THAT(look(), ElementsAre(1)) << "as where none is heard";
}

TEST_F(SilentFlowsTest, MayGetMoreFlows) {
  flows_.resize(6, FlowWait{true, 0, 0, 0});
  look();
  send(5);
  EXPECT_EQ(looks_until_one_is_given_up(true), SilentFlows::kLooksMin);
}

}  // namespace
}  // namespace braid
