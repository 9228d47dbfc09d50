// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/planner/instances.h"

namespace braid {
namespace {

// The paper's loop as it stands there, every τ_c computed anew after every merge. Layers are
// counted from 0; the last one's gradient comes first.
class Paper {
 public:
  Paper(const Workload& workload, LinearCost cost) : cost_(cost) {
    for (auto tensor = workload.tensors.rbegin(); tensor != workload.tensors.rend(); ++tensor) {
      ready_.push_back(tensor->ready_seconds);
      bytes_.push_back(tensor->bytes);
      t_c_.push_back(time(tensor->bytes));
    }
    layers_ = ready_.size();
    compute_starts();
  }

  // `merges(l)`: whether l is merged into l − 1.
  template <typename Merges>
  std::vector<uint32_t> ends(const Merges& merges) {
    std::vector<uint32_t> ends;
    for (size_t l = layers_ - 1; l >= 1; --l) {
      if (merges(l)) {
        t_c_[l] = 0;
        bytes_[l - 1] += bytes_[l];
        t_c_[l - 1] = time(bytes_[l - 1]);
        compute_starts();
      } else {
        ends.push_back(static_cast<uint32_t>(layers_ - l));
      }
    }
    ends.push_back(static_cast<uint32_t>(layers_));
    return ends;
  }

  double ready(size_t l) const { return ready_[l]; }
  double start(size_t l) const { return start_[l]; }
  uint64_t bytes(size_t l) const { return bytes_[l]; }

 private:
  double time(uint64_t bytes) const {
    return cost_.startup_seconds + cost_.seconds_per_byte * static_cast<double>(bytes);
  }
  void compute_starts() {
    start_.assign(layers_, 0);
    start_[layers_ - 1] = ready_[layers_ - 1];
    for (size_t l = layers_ - 1; l-- > 0;) {
      start_[l] = std::max(start_[l + 1] + t_c_[l + 1], ready_[l]);
    }
  }

  LinearCost cost_;
  size_t layers_ = 0;
  std::vector<double> ready_;
  std::vector<uint64_t> bytes_;
  std::vector<double> t_c_;
  std::vector<double> start_;
};

template <typename Check>
void for_many_instances(const Check& check) {
  Instances instances(1);
  for (int i = 0; i < 4000; ++i) {
    const bool whole = i % 2 == 0;
    const Workload workload = whole ? instances.whole_workload(40) : instances.real_workload(120);
    check(workload, whole ? instances.whole_cost() : instances.real_cost());
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(GreedyPlannersTest, MgwfbpIsThePapersAlgorithmGroupForGroup) {
  for_many_instances([](const Workload& workload, LinearCost cost) {
    Paper paper(workload, cost);
    const auto expected = paper.ends(
        [&](size_t l) { return paper.ready(l - 1) - paper.start(l) < cost.startup_seconds; });
    EXPECT_EQ(ends_of(plan_by("mgwfbp", workload, LinearCostModel(cost))), expected);
  });
}

TEST(GreedyPlannersTest, AscMergesOnlyWhatWouldWaitForTheNetwork) {
  for_many_instances([](const Workload& workload, LinearCost cost) {
    Paper paper(workload, cost);
    const auto expected = paper.ends([&](size_t l) { return paper.start(l) > paper.ready(l - 1); });
    EXPECT_EQ(ends_of(plan_by("asc", workload, LinearCostModel(cost))), expected);
  });
}

TEST(GreedyPlannersTest, DearMergesSmallMessagesAsWell) {
  for_many_instances([](const Workload& workload, LinearCost cost) {
    Paper paper(workload, cost);
    PlannerOptions options;
    options.small_tensor_elements = workload.tensors.size() % 2 == 0 ? 2 : 100'000;
    const auto expected = paper.ends([&](size_t l) {
      return paper.ready(l - 1) - paper.start(l) < cost.startup_seconds ||
             paper.bytes(l) / 4 < options.small_tensor_elements;
    });
    EXPECT_EQ(ends_of(plan_by("dear", workload, LinearCostModel(cost), options)), expected);
  });
}

// Up to 10 bytes a startup takes 1, beyond it takes 3: a message that grows pays another one.
TEST(GreedyPlannersTest, MgwfbpTakesTheStartupOfTheMessageInQuestion) {
  std::vector<CostModel::Phases> table(11, {1, 0});
  table.push_back({3, 0});
  const TableCost cost(table);
  EXPECT_EQ(ends_of(plan_by("mgwfbp", {{{0, 10}, {2, 10}, {4, 10}}}, cost)),
            (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(ends_of(plan_by("mgwfbp", {{{0, 11}, {2, 10}, {4, 10}}}, cost)),
            (std::vector<uint32_t>{3}));
}

}  // namespace
}  // namespace braid
