// SPDX-License-Identifier: Apache-2.0
#include "job/look_pace.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(LookPaceTest, FewOperationsAreLookedAtEachTime) {
  LookPace pace;
  for (uint64_t now_ns = 0; now_ns < 5; ++now_ns) EXPECT_TRUE(pace.is_due(now_ns, LookPace::kFew));
}

TEST(LookPaceTest, ManyOperationsAreLookedAtAfterAPauseForEach) {
  constexpr size_t kMany = 65'536;
  LookPace pace;
  EXPECT_TRUE(pace.is_due(100, kMany));
  const uint64_t next_ns = 100 + kMany * LookPace::kPauseNs;
  EXPECT_FALSE(pace.is_due(next_ns - 1, kMany));
  EXPECT_TRUE(pace.is_due(next_ns, kMany));
  EXPECT_FALSE(pace.is_due(next_ns + 1, kMany));
}

TEST(LookPaceTest, NoPauseIsLeftWhenThereAreFewAgain) {
  LookPace pace;
  EXPECT_TRUE(pace.is_due(0, 10 * LookPace::kFew));
  EXPECT_FALSE(pace.is_due(1, 10 * LookPace::kFew));
  EXPECT_TRUE(pace.is_due(2, LookPace::kFew));
}

}  // namespace
}  // namespace braid
