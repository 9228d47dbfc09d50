// SPDX-License-Identifier: Apache-2.0
#include "planner/delayed_simulator.h"

#include <gtest/gtest.h>

#include "base/errors_testing.h"
#include "tests/unit/planner/instances.h"

namespace braid {
namespace {

using testing::names;

// An eighth, as of 2bit and 32 bits.
uint64_t an_eighth(uint64_t bytes) { return bytes / 8; }

UpdateMethod method_of(std::string_view text) { return parse_update_methods(text).value().front(); }

UpdateTimes times_of_method(const Workload& workload, const CostModel& cost,
                            std::string_view method, std::string_view planner = "wfbp",
                            const SimulatorOptions& simulator = {}) {
  UpdateOptions options;
  options.simulator = simulator;
  options.planning.streams = simulator.streams;
  options.encoded_bytes = an_eighth;
  const auto times =
      simulate_update(workload, cost, *find_planner(planner).value(), method_of(method), options);
  EXPECT_TRUE(times) << times.status().message();
  return times ? *times : UpdateTimes{};
}

double seconds_of_step(const Workload& workload, const CostModel& cost, std::string_view method) {
  return times_of_method(workload, cost, method).iteration_seconds;
}

// Backward: 3 s and 1 s; forward: 2 s. All-reduces: 1 + 8 and 1 + 16 s.
Workload two_tensors() { return {{{3, 8}, {4, 16}}, 2}; }
const LinearCostModel kSlow({1, 1});

TEST(DelayedSimulatorTest, SyncIsOneSimulatedStep) {
  const UpdateTimes times = times_of_method(two_tensors(), kSlow, "sync");
  // From 3 to 12, and from there to 29; 25 of that after backward.
  EXPECT_DOUBLE_EQ(times.iteration_seconds, 2 + 29);
  EXPECT_DOUBLE_EQ(times.compute_seconds, 6);
  EXPECT_DOUBLE_EQ(times.communication_seconds, 26);
  EXPECT_DOUBLE_EQ(times.exposed_seconds, 25);
  EXPECT_DOUBLE_EQ(times.hidden_share(), 1.0 / 6);
  EXPECT_EQ(times.wire_share, 1);
  EXPECT_EQ(times.groups, 2u);
}

TEST(DelayedSimulatorTest, ShardedIsOneShardedStep) {
  const UpdateTimes times = times_of_method(two_tensors(), kSlow, "sharded");
  // The first layer's parameters are there at 29. Forward then needs its whole 2 s.
  EXPECT_DOUBLE_EQ(times.iteration_seconds, 31);
  EXPECT_DOUBLE_EQ(times.communication_seconds, 26);
  EXPECT_EQ(times.wire_share, 1);
}

// What the next round is made of are the weights of this one.
TEST(DelayedSimulatorTest, StreamsDoNotOverlapRoundsOfAcco) {
  SimulatorOptions two;
  two.streams = 2;
  const Workload workload{{{1, 10}}, 1};
  const LinearCostModel cost({4, 1});
  EXPECT_DOUBLE_EQ(times_of_method(workload, cost, "acco", "wfbp", two).iteration_seconds, 14);
  EXPECT_LT(times_of_method(workload, cost, "od-sgd", "wfbp", two).iteration_seconds, 14);
}

TEST(DelayedSimulatorTest, SsdSgdPullsInEachKthStep) {
  // Pushes take half of 26 s, and each is waited for as a round with a pull is.
  const UpdateTimes times = times_of_method(two_tensors(), kSlow, "ssd-sgd:4");
  EXPECT_DOUBLE_EQ(times.iteration_seconds, (3 * 13 + 26) / 4.0);
  EXPECT_DOUBLE_EQ(times.communication_seconds, (3 * 13 + 26) / 4.0);
  EXPECT_DOUBLE_EQ(times.wire_share, (1 + 1.0 / 4) / 2);
  // 5 s and 2.5 s hide behind 6 s.
  const UpdateTimes fast = times_of_method(two_tensors(), LinearCostModel({1, 0.125}), "ssd-sgd:4");
  EXPECT_DOUBLE_EQ(fast.iteration_seconds, 6);
  EXPECT_DOUBLE_EQ(fast.communication_seconds, (3 * 2.5 + 5) / 4);
}

TEST(DelayedSimulatorTest, AddingBelongsToThePush) {
  UpdateOptions options;
  options.adding_share = 0.5;
  options.encoded_bytes = an_eighth;
  const Planner& planner = *find_planner("wfbp").value();
  // Half of the transfers' 24 s is adding, a quarter each is sent and sent back; startups: 2 s.
  const auto ssd = simulate_update(two_tensors(), kSlow, planner, method_of("ssd-sgd:2"), options);
  EXPECT_DOUBLE_EQ(ssd.value().iteration_seconds, ((1 + 6 + 12) + 26) / 2.0);
  EXPECT_DOUBLE_EQ(ssd.value().wire_share, 0.75) << "adding sends nothing";
  const auto cd = simulate_update(two_tensors(), kSlow, planner, method_of("cd-sgd:2"), options);
  EXPECT_DOUBLE_EQ(cd.value().iteration_seconds, ((2 + 6 / 8.0 + 12 + 6) + 26) / 2);
}

TEST(DelayedSimulatorTest, CdSgdEncodesWhatItPushes) {
  // Startups 2 s, the pull 12 s, the push an eighth of 12 s; each 5th round as it is.
  const UpdateTimes times = times_of_method(two_tensors(), kSlow, "cd-sgd:5");
  EXPECT_DOUBLE_EQ(times.iteration_seconds, (4 * 15.5 + 26) / 5);
  EXPECT_DOUBLE_EQ(times.wire_share, (4 * (1 + 1.0 / 8) / 2 + 1) / 5);
}

TEST(DelayedSimulatorTest, DiLoCoHidesAnExchangeBehindFurtherSteps) {
  // Two steps, 12 s, of the exchange's 26 s.
  EXPECT_DOUBLE_EQ(seconds_of_step(two_tensors(), kSlow, "diloco:6,overlap=2"), (4 * 6 + 26) / 6.0);
  const UpdateTimes all = times_of_method(two_tensors(), kSlow, "diloco:6,overlap=5");
  EXPECT_DOUBLE_EQ(all.iteration_seconds, 6);
  EXPECT_DOUBLE_EQ(all.hidden_share(), 1);
  // More than there are local steps: no exchange begins before the one before it is over.
  EXPECT_DOUBLE_EQ(seconds_of_step(two_tensors(), kSlow, "diloco:3,overlap=3"), 26 / 3.0);
}

TEST(DelayedSimulatorTest, DiLoCoSpreadsFragmentsOverItsPeriod) {
  // One fragment of 9 s after the second step of four, one of 17 s after the fourth.
  const UpdateTimes waited = times_of_method(two_tensors(), kSlow, "diloco:4,fragments=2");
  EXPECT_DOUBLE_EQ(waited.iteration_seconds, (4 * 6 + 26) / 4.0);
  EXPECT_DOUBLE_EQ(waited.wire_share, 0.25);
  EXPECT_EQ(waited.groups, 2u);
  // One step hides 6 s of each, two hide 12 s: all of the shorter one.
  EXPECT_DOUBLE_EQ(seconds_of_step(two_tensors(), kSlow, "diloco:4,fragments=2,overlap=1"),
                   (4 * 6 + 3 + 11) / 4.0);
  EXPECT_DOUBLE_EQ(seconds_of_step(two_tensors(), kSlow, "diloco:4,fragments=2,overlap=2"),
                   (4 * 6 + 5) / 4.0);
}

TEST(DelayedSimulatorTest, FragmentsHaveAboutAsManyBytesEach) {
  // 10 of 20 bytes are reached with the second tensor.
  const Workload workload{{{1, 6}, {1, 6}, {1, 6}, {1, 2}}, 0};
  const Planner& planner = *find_planner("wfbp").value();
  const auto two =
      make_update_rounds(workload, kSlow, planner, method_of("diloco:2,fragments=2"), {});
  ASSERT_TRUE(two);
  ASSERT_EQ(two->kinds.size(), 2u);
  EXPECT_EQ(two->kinds[0].wire_bytes, 12);
  EXPECT_EQ(two->kinds[1].wire_bytes, 8);
  const Workload uneven{{{1, 100}, {1, 1}, {1, 1}}, 0};
  const auto three =
      make_update_rounds(uneven, kSlow, planner, method_of("diloco:7,fragments=3"), {});
  ASSERT_TRUE(three);
  for (const UpdateRound& round : three->kinds) EXPECT_EQ(round.units.size(), 1u);
  const std::vector<std::optional<uint32_t>> after = {{}, 0, {}, 1, {}, {}, 2};
  EXPECT_EQ(three->kind_of_step, after);
}

TEST(DelayedSimulatorTest, MoreFragmentsThanTensorsAreRefused) {
  const auto times = simulate_update(two_tensors(), kSlow, *find_planner("wfbp").value(),
                                     method_of("diloco:4,fragments=3"), {});
  ASSERT_FALSE(times);
  EXPECT_TRUE(
      names(times.status().message(), {"'diloco:4,fragments=3'", "2 tensors", "3 fragments"}));
}

TEST(DelayedSimulatorTest, APeriodOfTooManyUnitsIsRefused) {
  Workload workload;
  workload.tensors.assign(10'000, {1, 1});
  const auto times = simulate_update(workload, kSlow, *find_planner("wfbp").value(),
                                     method_of("ssd-sgd:1000"), {});
  ASSERT_FALSE(times);
  EXPECT_TRUE(names(times.status().message(), {"'ssd-sgd:1000'", "10000000 units"}));
  EXPECT_TRUE(simulate_update(workload, kSlow, *find_planner("single").value(),
                              method_of("ssd-sgd:1000"), {}));
}

TEST(DelayedSimulatorTest, PlansForTensorsThatAreReadyTogether) {
  // During backward two messages are worth their startups; after it one is better.
  const LinearCostModel cost({1, 0.125});
  EXPECT_EQ(times_of_method({{{1, 40}, {9, 40}}, 2}, cost, "sync", "exact").groups, 2u);
  EXPECT_EQ(times_of_method({{{1, 40}, {9, 40}}, 2}, cost, "od-sgd", "exact").groups, 1u);
}

// With two streams the next round's startups go by during this round's transfers.
TEST(DelayedSimulatorTest, StreamsOverlapRounds) {
  SimulatorOptions two;
  two.streams = 2;
  const Workload workload{{{1, 10}}, 1};
  const UpdateTimes one_stream = times_of_method(workload, LinearCostModel({4, 1}), "od-sgd");
  EXPECT_DOUBLE_EQ(one_stream.iteration_seconds, 14);
  const UpdateTimes times =
      times_of_method(workload, LinearCostModel({4, 1}), "od-sgd", "wfbp", two);
  EXPECT_LT(times.iteration_seconds, 13);
  EXPECT_GT(times.iteration_seconds, 10 - 1e-9) << "the transfers still take turns";
  EXPECT_NEAR(times.communication_seconds, times.iteration_seconds, 1e-9);
  const UpdateTimes quick =
      times_of_method(workload, LinearCostModel({0.5, 0.1}), "od-sgd", "wfbp", two);
  EXPECT_DOUBLE_EQ(quick.iteration_seconds, 2);
  EXPECT_NEAR(quick.communication_seconds, 1.5, 1e-9);
}

// What an exchange sends is known when the one before it has been merged.
TEST(DelayedSimulatorTest, StreamsDoNotOverlapExchangesOfTheSameParameters) {
  SimulatorOptions two;
  two.streams = 2;
  const UpdateTimes times =
      times_of_method({{{1, 10}}, 1}, LinearCostModel({4, 1}), "diloco:1,overlap=1", "wfbp", two);
  EXPECT_DOUBLE_EQ(times.iteration_seconds, 14);
}

TEST(DelayedSimulatorTest, NothingToSendTakesTheForwardPass) {
  Workload workload;
  workload.forward_seconds = 5;
  for (const char* method :
       {"sync", "sharded", "od-sgd", "ssd-sgd:2", "cd-sgd:2", "acco", "diloco:2"}) {
    const UpdateTimes times = times_of_method(workload, kSlow, method);
    EXPECT_EQ(times.iteration_seconds, 5) << method;
    EXPECT_EQ(times.communication_seconds, 0) << method;
    EXPECT_EQ(times.hidden_share(), 1) << method;
  }
}

TEST(DelayedSimulatorTest, TheSlowestWorkerPacesEveryStep) {
  SimulatorOptions options;
  options.workers = 8;
  options.straggle = 0.5;
  const Workload workload = two_tensors();
  const double backward = slowest_ready_seconds(workload, options).back();
  ASSERT_GT(backward, workload.backward_seconds());
  const UpdateTimes times =
      times_of_method(workload, LinearCostModel({0, 0}), "od-sgd", "wfbp", options);
  EXPECT_DOUBLE_EQ(times.iteration_seconds, 2 + backward);
  EXPECT_DOUBLE_EQ(times.compute_seconds, 2 + backward);
}

TEST(DelayedSimulatorTest, ASaturatedNetworkIsFoundAlsoWhereItsQueueGrowsSlowly) {
  // Each step of 6 s begins an exchange of 6.09 s, which the end of the 5th step after it waits
  // for. Until then the queue gets longer by 0.09 s a step: nothing waits for 333 steps.
  Workload workload;
  workload.tensors.assign(5, {4, 1});
  workload.forward_seconds = 2;
  EXPECT_NEAR(
      seconds_of_step(workload, LinearCostModel({6.09, 0}), "diloco:5,overlap=5,fragments=5"), 6.09,
      1e-9);
}

}  // namespace
}  // namespace braid
