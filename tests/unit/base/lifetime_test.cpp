// SPDX-License-Identifier: Apache-2.0
#include "base/lifetime.h"

#include <functional>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(LifetimeTest, MayEndBeforeItIsDestroyed) {
  Lifetime lifetime;
  const Lifetime::Token token = lifetime.token();
  lifetime.end();
  EXPECT_TRUE(token.is_over());
  EXPECT_TRUE(lifetime.token().is_over());
}

TEST(LifetimeTest, AGuardedTaskDoesNothingAfterTheEnd) {
  int sum = 0;
  auto lifetime = std::make_unique<Lifetime>();
  const std::function<void(int)> task = lifetime->guard([&sum](int number) { sum += number; });
  task(3);
  task(4);
  EXPECT_EQ(sum, 7);
  lifetime.reset();
  task(5);
  EXPECT_EQ(sum, 7);
}

TEST(LifetimeTest, AGuardedTaskMayEndIt) {
  auto lifetime = std::make_unique<Lifetime>();
  int calls = 0;
  const std::function<void()> task = lifetime->guard([&] {
    ++calls;
    lifetime.reset();
  });
  task();
  task();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace braid
