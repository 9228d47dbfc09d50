// SPDX-License-Identifier: Apache-2.0
#include "base/near_names.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("rails", "rails"), 0u);
  EXPECT_EQ(edit_distance("rail", "rails"), 1u);
}

TEST(NearestName, IsTheOneThatWasMeant) {
  const std::vector<std::string> names = {"status", "explain", "top", "jobs"};
  EXPECT_EQ(nearest_name("statsu", names), "status");
  EXPECT_EQ(nearest_name("job", names), "jobs");
  EXPECT_EQ(nearest_name("explian", names), "explain");
  EXPECT_EQ(nearest_name("start", names), std::nullopt);
  EXPECT_EQ(nearest_name("", names), std::nullopt);
  EXPECT_EQ(nearest_name("status", {}), std::nullopt);
}

}  // namespace
}  // namespace braid
