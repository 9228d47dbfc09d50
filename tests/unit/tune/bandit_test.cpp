// SPDX-License-Identifier: Apache-2.0
#include "tune/bandit.h"

#include <gtest/gtest.h>

#include "tune/random_generator.h"

namespace braid {
namespace {

TEST(Bandit, GivesEveryArmATurnFirst) {
  Bandit bandit(3);
  for (size_t arm = 0; arm < 3; ++arm) {
    ASSERT_EQ(bandit.choose(), arm);
    bandit.reward(arm, arm == 0 ? 1 : 0);
  }
  EXPECT_EQ(bandit.choose(), 0u);
}

TEST(Bandit, GivesMostTurnsToTheArmThatPays) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomGenerator random(seed);
    Bandit bandit(5);
    for (int turn = 0; turn < 200; ++turn) {
      const size_t arm = bandit.choose().value();
      const double chance = arm == 3 ? 0.8 : 0.3;
      bandit.reward(arm, random.unit() < chance ? 1 : 0);
    }
    for (const size_t other : {0, 1, 2, 4}) EXPECT_GT(bandit.turns(3), bandit.turns(other));
    EXPECT_GT(bandit.turns(3), 80u) << "seed " << seed;
  }
}

TEST(Bandit, ComesBackToAnArmThatWasUnluckyOnce) {
  Bandit bandit(2);
  bandit.reward(0, 0);
  bandit.reward(1, 0.3);
  for (int turn = 0; turn < 100; ++turn) {
    const size_t arm = bandit.choose().value();
    bandit.reward(arm, arm == 0 ? 1 : 0.3);
  }
  EXPECT_GT(bandit.turns(0), 80u);
}

TEST(Bandit, LeavesRetiredArmsAlone) {
  Bandit bandit(2);
  bandit.retire(0);
  EXPECT_EQ(bandit.choose(), 1u);
  bandit.retire(1);
  EXPECT_FALSE(bandit.choose());
}

}  // namespace
}  // namespace braid
