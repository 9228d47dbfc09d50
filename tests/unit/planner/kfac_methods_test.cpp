// SPDX-License-Identifier: Apache-2.0
#include "planner/kfac_methods.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/algorithm_cost.h"
#include "tests/unit/planner/kfac_instances.h"
#include "tests/unit/planner/shared_data.h"

namespace braid {
namespace {

KfacTimes times_of(const KfacStep& step, const KfacLink& link, std::string_view method) {
  return simulate_kfac_method(step, link, method).value().times;
}

TEST(KfacMethodsTest, OursIsNeverWorseThanAnother) {
  Instances instances(81);
  int better = 0;
  for (int i = 0; i < 60; ++i) {
    const KfacStep step = real_kfac_step(instances, 30);
    const auto ranks = static_cast<uint32_t>(1 + instances.below(40));
    const KfacLink link = KfacLink::of(ranks, instances.real_cost());
    const double ours = times_of(step, link, "braid").total_seconds;
    for (const KfacMethod& method : kfac_methods()) {
      ASSERT_LE(ours, times_of(step, link, method.name).total_seconds)
          << "instance " << i << ", " << method.name;
    }
    if (ours < times_of(step, link, "spd-kfac").total_seconds * 0.95) ++better;
  }
  EXPECT_GT(better, 15);  // otherwise there was nothing to gain
}

TEST(KfacMethodsTest, ErrorsNameTheMethodAndTheRanks) {
  const KfacStep step = tiny_kfac_step();
  EXPECT_EQ(simulate_kfac_method(step, KfacLink::of(2, {1, 1}), "kaisa").status().message(),
            "no method is called 'kaisa'; right are d-kfac, mpd-kfac, pipeline, balance, spd-kfac, "
            "spd-kfac:t, braid");
  EXPECT_EQ(simulate_kfac_method(step, KfacLink::of(0, {1, 1}), "braid").status().message(),
            "0 ranks; right are 1 to 65536");
}

// Two tensors of 3 bytes, whose squares have 4, and one of 1. The second is ready at 5. By its
// triangle the first is through at 1 + 5 = 6, and the third, ready at 9, does not wait for the
// second, which starts at 6: 9 − 6 < 3 is false.
TEST(SpdFactorPlanTest, TakesAFactorThatIsSentAloneForTheWholeMatrix) {
  const Workload stream{{{1, 3}, {5, 3}, {9, 1}}, 0};
  const LinearCostModel cost({3, 1});
  const std::vector<uint64_t> squares = {4, 4, 1};
  const std::vector<Plan::Group> alone = {{0, 1}, {1, 2}, {2, 3}};
  EXPECT_EQ(spd_factor_plan(stream, std::vector<uint64_t>{2, 3, 1}, cost).groups, alone);
  // By its square it is through at 8, so the third merges with the second: 9 − 8 < 3.
  const std::vector<Plan::Group> merged = {{0, 1}, {1, 3}};
  EXPECT_EQ(spd_factor_plan(stream, squares, cost).groups, merged);
}

// Factors of ResNet-50, as its authors measured them: 54 A, then 54 G, whose times stand in the
// order of the backward pass.
class SpdGroupsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = shared_data("kfac/resnet50_kfac.json");
    BRAID_SKIP_WITHOUT(path);
    data_ = nlohmann::json::parse(std::ifstream(path));
  }

  std::vector<uint64_t> dimensions(const char* kind) const {
    auto dimensions = data_[kind].get<std::vector<uint64_t>>();
    if (std::string_view(kind) == "G") std::ranges::reverse(dimensions);
    return dimensions;
  }
  std::vector<double> seconds(const char* kind) const {
    return data_[std::string("t") + kind].get<std::vector<double>>();
  }

  // Groups of A and of G. Only the factors take time, as in the authors' profile.
  std::vector<size_t> groups(double startup_seconds, double seconds_per_element,
                             bool squares_alone = true) const {
    const LinearCostModel cost({startup_seconds, seconds_per_element / 4});
    std::vector<size_t> groups;
    for (const char* kind : {"A", "G"}) {
      Workload stream;
      std::vector<uint64_t> alone;
      double now = 0;
      const std::vector<double> times = seconds(kind);
      for (const uint64_t dimension : dimensions(kind)) {
        now += times[stream.tensors.size()];
        stream.tensors.push_back({now, dimension * (dimension + 1) / 2 * 4});
        alone.push_back(squares_alone ? dimension * dimension * 4 : stream.tensors.back().bytes);
      }
      groups.push_back(spd_factor_plan(stream, alone, cost).groups.size());
    }
    return groups;
  }

  nlohmann::json data_;
};

// The constants of its code (utils.py: alpha_allreduce, beta_allreduce), per element.
TEST_F(SpdGroupsTest, Are24And4WithTheConstantsOfItsCode) {
  EXPECT_EQ(groups(0.000929, 1.4335e-9), (std::vector<size_t>{24, 4}));
}

TEST_F(SpdGroupsTest, AreMoreIfAFactorAloneCostsItsTriangle) {
  EXPECT_EQ(groups(0.000929, 1.4335e-9, false), (std::vector<size_t>{24, 5}));
}

// The constants that its paper and the comments of its code have: each stream is one message.
TEST_F(SpdGroupsTest, AreOneOfEachWithTheConstantsOfThePaper) {
  EXPECT_EQ(groups(1.22e-2, 1.45e-9), (std::vector<size_t>{1, 1}));
}

class KfacResnetTest : public ::testing::Test {
 protected:
  static KfacStep step() {
    return load_kfac_step(BRAID_PROJECT_FOLDER "/traces/resnet50_kfac.json").value();
  }
  // What docs/second-order.md says: SPD-KFAC's link at 64 ranks, as a ring.
  static KfacLink link(uint32_t ranks) {
    return KfacLink::of(ranks, algorithm_cost("ring", ranks, {7.373e-6, 1.8204e-10, 0}).value());
  }
  static double total(uint32_t ranks, std::string_view method) {
    return times_of(step(), link(ranks), method).total_seconds;
  }
};

// Published, in seconds: 0.853 neither, 0.781 pipelining, 0.747 balance, 0.676 both.
TEST_F(KfacResnetTest, TheAblationHasThePublishedShape) {
  const double neither = total(64, "d-kfac");
  const double pipeline = total(64, "pipeline");
  const double balance = total(64, "balance");
  const double both = total(64, "spd-kfac");
  EXPECT_GT(neither, pipeline);
  EXPECT_GT(pipeline, balance);
  EXPECT_GT(balance, both);
  EXPECT_LT(total(64, "mpd-kfac"), neither);
  EXPECT_GT(total(64, "mpd-kfac"), both);
}

TEST_F(KfacResnetTest, TotalsAt64Ranks) {
  EXPECT_NEAR(total(64, "d-kfac"), 0.654, 0.0005);
  EXPECT_NEAR(total(64, "spd-kfac"), 0.418, 0.0005);
  EXPECT_NEAR(total(64, "braid"), 0.343, 0.0005);
}

// traces/README.md says what else is in the file.
TEST_F(KfacResnetTest, TheFileHasTheMeasuredFactors) {
  const std::string path = shared_data("kfac/resnet50_kfac.json");
  BRAID_SKIP_WITHOUT(path);
  const auto data = nlohmann::json::parse(std::ifstream(path));
  size_t place = 0;
  for (const KfacStep::Layer& layer : step().layers) {
    if (!layer.a) continue;
    ASSERT_LT(place, data["A"].size());
    EXPECT_EQ(layer.a->dimension, data["A"][place]) << layer.name;
    EXPECT_EQ(layer.a->compute_seconds, data["tA"][place]) << layer.name;
    EXPECT_EQ(layer.g->dimension, data["G"][place]) << layer.name;
    EXPECT_EQ(layer.g->compute_seconds, data["tG"][data["G"].size() - 1 - place]) << layer.name;
    ++place;
  }
  EXPECT_EQ(place, data["A"].size());
}

}  // namespace
}  // namespace braid
