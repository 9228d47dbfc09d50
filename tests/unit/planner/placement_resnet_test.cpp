// SPDX-License-Identifier: Apache-2.0
// The inverses of ResNet-50's 108 factors, by the published time of an inverse. The table of
// docs/second-order.md was made with the same numbers.
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/planner/placement_instances.h"
#include "tests/unit/planner/shared_data.h"

namespace braid {
namespace {

double inverse_seconds(uint64_t dimension) {
  return 3.64e-3 * std::exp(4.77e-4 * static_cast<double>(dimension));
}

PlacementInstance resnet(const std::string& path, double seconds_per_byte) {
  PlacementInstance instance;
  instance.link = {1e-4, seconds_per_byte};
  const auto factors = nlohmann::json::parse(std::ifstream(path));
  for (const char* kind : {"A", "G"}) {
    for (const uint64_t dimension : factors[kind]) {
      const uint64_t triangle = dimension * (dimension + 1) / 2 * sizeof(float);
      instance.items.push_back(
          placed_item(instance.items.size(), dimension, inverse_seconds(dimension), triangle));
    }
  }
  return instance;
}

TEST(PlacementResnetTest, IsFarAheadOfSpdKfacsRuleAndNearTheBound) {
  const std::string path = shared_data("kfac/resnet50_kfac.json");
  BRAID_SKIP_WITHOUT(path);
  for (const double gigabits : {10, 100}) {
    PlacementInstance instance = resnet(path, 8e-9 / gigabits);
    ASSERT_EQ(instance.items.size(), 108u);
    for (uint32_t ranks = 4; ranks <= 256; ranks *= 2) {
      instance.ranks = ranks;
      const Placement best = instance.placed("best");
      EXPECT_LE(best.makespan_seconds, instance.placed("lbp:t").makespan_seconds);
      EXPECT_LE(best.makespan_seconds * 1.8, instance.placed("lbp").makespan_seconds) << ranks;
      EXPECT_LE(best.makespan_seconds, best.bound_seconds * 1.25) << ranks;
    }
  }
}

}  // namespace
}  // namespace braid
