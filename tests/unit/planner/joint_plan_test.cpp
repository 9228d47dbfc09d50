// SPDX-License-Identifier: Apache-2.0
#include "planner/joint_plan.h"

#include <limits>

#include <gtest/gtest.h>

#include "planner/joint_table.h"
#include "tests/unit/planner/instances.h"

namespace braid {
namespace {

// All plans of all streams, and all orders in which the link may send their groups: whatever has
// been sent, any stream may come next with any number of tensors.
class AllOrders {
 public:
  AllOrders(const std::vector<Workload>& streams, const CostModel& cost)
      : streams_(streams), cost_(cost), sent_(streams.size()) {
    extend(0);
  }
  double end_seconds() const { return best_; }

 private:
  void extend(double end) {
    bool is_all = true;
    for (size_t stream = 0; stream < streams_.size(); ++stream) {
      const auto& tensors = streams_[stream].tensors;
      const size_t begin = sent_[stream];
      uint64_t bytes = 0;
      for (size_t i = begin; i < tensors.size(); ++i) {
        is_all = false;
        bytes += tensors[i].bytes;
        sent_[stream] = i + 1;
        extend(std::max(end, tensors[i].ready_seconds) + cost_.seconds(bytes));
      }
      sent_[stream] = begin;
    }
    if (is_all) best_ = std::min(best_, end);
  }

  const std::vector<Workload>& streams_;
  const CostModel& cost_;
  std::vector<size_t> sent_;
  double best_ = std::numeric_limits<double>::infinity();
};

std::vector<Plan> one_by_one(const char* planner, const std::vector<Workload>& streams,
                             const CostModel& cost) {
  std::vector<Plan> plans;
  for (const Workload& stream : streams) plans.push_back(plan_by(planner, stream, cost));
  return plans;
}

TEST(JointPlanTest, FindsWhatAllPlansInAllOrdersHave) {
  Instances instances(61);
  for (int i = 0; i < 3000; ++i) {
    std::vector<Workload> streams;
    for (size_t count = 1 + instances.below(3); count > 0; --count) {
      streams.push_back(instances.whole_workload(count == 1 ? 4 : 3));
    }
    const LinearCostModel cost(instances.whole_cost());
    const JointPlan joint = plan_jointly(streams, cost);
    ASSERT_EQ(joint.end_seconds, AllOrders(streams, cost).end_seconds()) << "instance " << i;
    ASSERT_EQ(joint.end_seconds, joint_end_seconds(streams, joint.plans, cost));
  }
}

TEST(JointPlanTest, IsNeverWorseThanPlansMadeOneByOne) {
  Instances instances(62);
  int better = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<Workload> streams;
    for (size_t count = 2 + instances.below(2); count > 0; --count) {
      streams.push_back(instances.real_workload(160));
    }
    const LinearCostModel cost(instances.real_cost());
    const JointPlan joint = plan_jointly(streams, cost);
    for (size_t stream = 0; stream < streams.size(); ++stream) {
      ASSERT_TRUE(check_plan(joint.plans[stream], streams[stream].tensors.size()).is_ok());
    }
    double best = std::numeric_limits<double>::infinity();
    for (const char* planner : {"exact", "mgwfbp", "wfbp", "single"}) {
      best = std::min(best, joint_end_seconds(streams, one_by_one(planner, streams, cost), cost));
    }
    ASSERT_LE(joint.end_seconds, best) << "instance " << i;
    if (joint.end_seconds < best * 0.99) ++better;
  }
  EXPECT_GT(better, 10);  // otherwise there was nothing to plan jointly
}

// Two tensors of one stream are ready at 0 and 5, one of the other at 1; a startup takes 4, a byte
// 1. With the link to itself the first stream merges nothing: it sends from 0 to 5 and from 5 to
// 10. But the other stream's tensor goes in between, and all is through at 15. It is better that
// the other stream goes first, from 1 to 6, and the pair from 6 to 12.
TEST(JointPlanTest, MergesWhatAnotherStreamHoldsUpAnyway) {
  const std::vector<Workload> streams = {{{{0, 1}, {5, 1}}, 0}, {{{1, 1}}, 0}};
  const LinearCostModel cost({4, 1});
  EXPECT_EQ(joint_end_seconds(streams, one_by_one("exact", streams, cost), cost), 15);
  const JointPlan joint = plan_jointly(streams, cost);
  EXPECT_EQ(joint.end_seconds, 12);
  EXPECT_EQ(joint.plans[0].groups, (std::vector<Plan::Group>{{0, 2}}));
}

TEST(JointPlanTest, PlansOneStreamAsTheExactPlannerDoes) {
  Instances instances(63);
  for (int i = 0; i < 100; ++i) {
    const std::vector<Workload> streams = {{}, instances.real_workload(300)};
    const LinearCostModel cost(instances.real_cost());
    const JointPlan joint = plan_jointly(streams, cost);
    EXPECT_TRUE(joint.plans[0].groups.empty());
    EXPECT_EQ(joint.plans[1], plan_by("exact", streams[1], cost));
  }
}

TEST(JointPlanTest, NothingToSendTakesNoTime) {
  const LinearCostModel cost({4, 1});
  EXPECT_EQ(plan_jointly({}, cost).end_seconds, 0);
  const std::vector<Workload> streams(3);
  const JointPlan joint = plan_jointly(streams, cost);
  EXPECT_EQ(joint.end_seconds, 0);
  EXPECT_EQ(joint.plans.size(), 3u);
}

// Zeros leave nothing to measure shares by; a stream may have more tensors than there are states.
TEST(JointPlanTest, CutsStreamsOfAnyKind) {
  const LinearCostModel nothing({0, 0});
  std::vector<Workload> streams(2);
  streams[0].tensors.resize(1000);
  streams[1].tensors.resize(100'000, {1, 1});
  EXPECT_EQ(plan_jointly(streams, nothing).end_seconds, 1);
  JointTable table(streams, nothing);
  EXPECT_FALSE(table.is_exact());
  const std::vector<Plan> plans = table.plans();
  for (size_t stream = 0; stream < streams.size(); ++stream) {
    EXPECT_TRUE(check_plan(plans[stream], streams[stream].tensors.size()).is_ok());
  }
}

}  // namespace
}  // namespace braid
