// SPDX-License-Identifier: Apache-2.0
// What holds of update methods over random workloads and costs, on one stream where nothing else is
// said. Recurrences are written out once more, without the simulator's parts.
#include <gtest/gtest.h>

#include "planner/delayed_simulator.h"
#include "tests/unit/planner/instances.h"

namespace braid {
namespace {

constexpr int kInstances = 200;
constexpr double kRounding = 1 + 1e-9;
const std::vector<std::string> kAllMethods = {
    "sync",     "sharded",  "od-sgd",   "ssd-sgd:1",          "ssd-sgd:3",          "cd-sgd:1",
    "cd-sgd:4", "diloco:1", "diloco:4", "diloco:4,overlap=2", "diloco:5,overlap=5", "acco"};

class UpdatePropertiesTest : public ::testing::Test {
 protected:
  // The next instance.
  void draw() {
    workload_ = instances_.real_workload(40);
    cost_ = instances_.real_cost();
  }
  UpdateTimes times(const std::string& method, LinearCost cost, uint32_t streams = 1) const {
    UpdateOptions options;
    options.simulator.streams = options.planning.streams = streams;
    options.encoded_bytes = [](uint64_t bytes) { return bytes / 16; };
    const auto methods = parse_update_methods(method);
    EXPECT_TRUE(methods);
    const auto times = simulate_update(workload_, LinearCostModel(cost, 1.5),
                                       *find_planner("ddp").value(), methods->front(), options);
    EXPECT_TRUE(times) << times.status().message();
    return *times;
  }
  double step(const std::string& method) const { return times(method, cost_).iteration_seconds; }
  double compute() const { return workload_.forward_seconds + workload_.backward_seconds(); }
  // Communication of all tensors, ready together, one message after the other.
  double communication(double share = 1) const {
    double seconds = 0;
    for (const Plan::Group& group : plan().groups) {
      double bytes = 0;
      for (uint32_t i = group.begin; i < group.end; ++i) {
        bytes += static_cast<double>(workload_.tensors[i].bytes);
      }
      seconds += cost_.seconds(bytes);
    }
    return seconds * share;
  }
  Plan plan() const { return plan_by("ddp", workload_, LinearCostModel(cost_)); }

  Instances instances_{41};
  Workload workload_;
  LinearCost cost_;
};

TEST_F(UpdatePropertiesTest, ANetworkThatTakesNoTimeLeavesCompute) {
  for (int i = 0; i < kInstances; ++i) {
    draw();
    for (const std::string& method : kAllMethods) {
      const UpdateTimes free = times(method, {0, 0});
      ASSERT_NEAR(free.iteration_seconds, compute(), compute() * 1e-9) << method;
      ASSERT_EQ(free.communication_seconds, 0) << method;
      ASSERT_EQ(free.hidden_share(), 1) << method;
    }
  }
}

TEST_F(UpdatePropertiesTest, OdSgdTakesTheLongerOfComputeAndCommunication) {
  for (int i = 0; i < kInstances; ++i) {
    draw();
    const double longer = std::max(compute(), communication());
    ASSERT_NEAR(step("od-sgd"), longer, longer * 1e-9);
  }
}

// x(i + 1) needs what was sent at the end of step i − 1, and the network carries one round at a
// time.
TEST_F(UpdatePropertiesTest, SsdSgdFollowsItsRecurrence) {
  for (int i = 0; i < kInstances; ++i) {
    draw();
    const uint64_t k = 1 + instances_.below(6);
    double begin = 0;
    double over_before = 0;  // the round of the step before
    double begin_counted = 0;
    const uint64_t steps = 20 * k;
    for (uint64_t s = 0; s < steps; ++s) {
      if (s == 10 * k) begin_counted = begin;
      const double made = begin + compute();
      const double over = std::max(made, over_before) + communication((s + 1) % k == 0 ? 1 : 0.5);
      begin = std::max(made, over_before);
      over_before = over;
    }
    const double mean = (begin - begin_counted) / static_cast<double>(10 * k);
    ASSERT_NEAR(step("ssd-sgd:" + std::to_string(k)), mean, mean * 1e-9) << "k = " << k;
  }
}

TEST_F(UpdatePropertiesTest, DiLoCoFollowsItsFormula) {
  for (int i = 0; i < kInstances; ++i) {
    draw();
    const uint64_t local = 1 + instances_.below(6);
    const uint64_t overlap = instances_.below(local + 1);
    const double exchange = std::max(communication(), static_cast<double>(overlap) * compute());
    const double period = static_cast<double>(local - overlap) * compute() + exchange;
    const std::string method = fmt::format("diloco:{},overlap={}", local, overlap);
    ASSERT_NEAR(step(method) * static_cast<double>(local), period, period * 1e-9) << method;
  }
}

TEST_F(UpdatePropertiesTest, MethodsMeetWhereTheyAreTheSame) {
  for (int i = 0; i < kInstances; ++i) {
    draw();
    const double od = step("od-sgd");
    ASSERT_EQ(step("ssd-sgd:1"), od);
    ASSERT_EQ(step("cd-sgd:1"), od);
    ASSERT_NEAR(step("acco"), od, od * 1e-9);
    ASSERT_NEAR(step("diloco:1,overlap=1"), od, od * 1e-9);
    const double alone = step("diloco:1");
    ASSERT_NEAR(alone, compute() + communication(), alone * 1e-9);
    // Synchronous, with nothing that overlaps.
    Workload late = workload_;
    for (Workload::Tensor& tensor : late.tensors) tensor.ready_seconds = late.backward_seconds();
    ASSERT_NEAR(alone, iteration_seconds(late, plan(), LinearCostModel(cost_)), alone * 1e-9);
    for (const char* method : {"ssd-sgd:1", "cd-sgd:1", "diloco:1", "acco"}) {
      ASSERT_EQ(times(method, cost_).wire_share, 1) << method;
    }
  }
}

TEST_F(UpdatePropertiesTest, AnExchangeTakesWhatOneSimulatedStepTakesOnAnyNumberOfStreams) {
  for (int i = 0; i < kInstances; ++i) {
    draw();
    Workload late = workload_;
    for (Workload::Tensor& tensor : late.tensors) tensor.ready_seconds = late.backward_seconds();
    for (const uint32_t streams : {1u, 2u, 4u}) {
      const double once = iteration_seconds(late, plan(), LinearCostModel(cost_, 1.5), streams);
      ASSERT_NEAR(times("diloco:1", cost_, streams).iteration_seconds, once, once * 1e-9);
      const double twice = once + compute();
      ASSERT_NEAR(2 * times("diloco:2", cost_, streams).iteration_seconds, twice, twice * 1e-9);
    }
  }
}

TEST_F(UpdatePropertiesTest, LessTrafficNeverTakesLonger) {
  for (int i = 0; i < kInstances; ++i) {
    draw();
    const double od = step("od-sgd");
    ASSERT_LE(od, step("sync") * kRounding);
    ASSERT_LE(step("sharded"), step("sync") * kRounding);
    for (const auto& [more, less] : std::vector<std::pair<std::string, std::string>>{
             {"od-sgd", "ssd-sgd:2"},
             {"ssd-sgd:2", "ssd-sgd:5"},
             {"od-sgd", "cd-sgd:2"},
             {"cd-sgd:2", "cd-sgd:5"},
             {"diloco:1", "diloco:2"},
             {"diloco:2", "diloco:7"},
             {"diloco:4", "diloco:4,overlap=1"},
             {"diloco:4,overlap=1", "diloco:4,overlap=3"},
             {"diloco:4,overlap=3", "diloco:4,overlap=4"}}) {
      ASSERT_LE(step(less), step(more) * kRounding) << less << ", " << more;
    }
  }
}

TEST_F(UpdatePropertiesTest, FragmentsThatMayTakeLongerNeverTakeLonger) {
  for (int i = 0; i < kInstances; ++i) {
    draw();
    const uint64_t fragments =
        std::min<uint64_t>(1 + instances_.below(4), workload_.tensors.size());
    double before = 0;
    for (uint32_t overlap = 0; overlap <= 6; ++overlap) {
      const double seconds =
          step(fmt::format("diloco:6,overlap={},fragments={}", overlap, fragments));
      if (overlap > 0) {
        ASSERT_LE(seconds, before * kRounding) << overlap << ", " << fragments;
      }
      before = seconds;
    }
  }
}

TEST_F(UpdatePropertiesTest, ASlowerNetworkNeverHelps) {
  for (int i = 0; i < kInstances; ++i) {
    draw();
    const LinearCost slower = {cost_.startup_seconds * instances_.real(1, 3),
                               cost_.seconds_per_byte * instances_.real(1, 3)};
    for (const std::string& method : kAllMethods) {
      // A unit that ends later may find a more urgent group ready, which then need not wait for a
      // large one. So a slower network may help it.
      if (method == "sharded") continue;
      // ddp's buckets do not depend on the cost.
      ASSERT_LE(step(method), times(method, slower).iteration_seconds * kRounding) << method;
    }
  }
}

TEST_F(UpdatePropertiesTest, TimesFitEachOtherOnAnyNumberOfStreams) {
  for (int i = 0; i < kInstances; ++i) {
    draw();
    for (const uint32_t streams : {1u, 2u, 4u}) {
      for (const std::string& method : kAllMethods) {
        const UpdateTimes one = times(method, cost_, streams);
        ASSERT_EQ(one.compute_seconds, compute());
        ASSERT_GE(one.iteration_seconds * kRounding, compute()) << method;
        ASSERT_NEAR(one.exposed_seconds, one.iteration_seconds - compute(),
                    one.iteration_seconds * 1e-9);
        // Where compute waits, something is under way; and no longer than a step takes.
        ASSERT_LE(one.exposed_seconds, one.communication_seconds + one.iteration_seconds * 1e-9);
        ASSERT_LE(one.communication_seconds, one.iteration_seconds * kRounding) << method;
        ASSERT_GE(one.hidden_share(), 0);
        ASSERT_LE(one.hidden_share(), 1);
      }
    }
  }
}

}  // namespace
}  // namespace braid
