// SPDX-License-Identifier: Apache-2.0
#include "job/job_progress.h"

#include <gtest/gtest.h>

#include "base/errors_testing.h"

namespace braid {
namespace {

using testing::names;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kMillisecond = 1'000'000;

class JobProgressTest : public ::testing::Test {
 protected:
  // Each takes 400 ms, of which 40 are exposed, with one all-reduce of 100 MB in 0.2 s.
  void make_steps(uint64_t steps) {
    numbers_.steps.add(steps);
    numbers_.step_ns.add(steps * 400 * kMillisecond);
    numbers_.exposed_ns.add(steps * 40 * kMillisecond);
    make_operations(steps);
  }
  void make_operations(uint64_t operations) {
    numbers_.operations.add(operations);
    numbers_.operation_bytes.add(operations * 100'000'000);
    numbers_.all_reduce_bytes.add(operations * 100'000'000);
    numbers_.all_reduce_ns.add(operations * 200 * kMillisecond);
  }
  std::optional<std::string> line(uint64_t seconds) {
    return progress_.take_line(60 * kSecond, seconds * kSecond);
  }

  JobNumbers numbers_{"train", {0}};
  JobProgress progress_{numbers_, 4, 2, 0};
};

TEST_F(JobProgressTest, TellsOfTheStepsSinceTheLastLine) {
  make_steps(145);
  EXPECT_EQ(line(59), std::nullopt) << "too early";
  EXPECT_EQ(line(60),
            "(4 ranks on 2 nodes): 145 steps, 145 of them in the last 1m 0s; 400 ms a step, 40 ms "
            "of it exposed (10 %); all-reduces run at 6 Gbit/s bus bandwidth");
  make_steps(1055);
  EXPECT_EQ(line(119), std::nullopt);
  EXPECT_TRUE(names(line(150).value(), {"1,200 steps", "1,055 of them in the last 1m 30s"}));
}

TEST_F(JobProgressTest, SaysNothingWhereNothingHasEnded) {
  EXPECT_EQ(line(100), std::nullopt);
  make_steps(1);
  EXPECT_TRUE(line(200));
  EXPECT_EQ(line(300), std::nullopt);
  make_steps(1);
  EXPECT_TRUE(line(400)) << "and of the whole time since the last line";
}

TEST_F(JobProgressTest, CountsOperationsWhereThereAreNoSteps) {
  make_operations(5210);
  EXPECT_TRUE(names(line(60).value(), {"5,210 operations", "5,210 of them", "6 Gbit/s"}));
  numbers_.operations.add(1);
  EXPECT_EQ(line(120), "(4 ranks on 2 nodes): 5,211 operations, 1 of them in the last 1m 0s")
      << "no all-reduce has ended";
}

TEST_F(JobProgressTest, SumsUpAtTheEnd) {
  make_steps(1000);
  (void)line(60);
  make_operations(200);
  EXPECT_EQ(
      progress_.summary("is over", 3720 * kSecond),
      "(4 ranks on 2 nodes) is over after 1h 2m: 1,000 steps; 400 ms a step, 40 ms of it "
      "exposed (10 %); 1,200 operations, 111.8 GiB; all-reduces run at 6 Gbit/s bus bandwidth");
}

TEST_F(JobProgressTest, SumsUpWhatHasDoneNothing) {
  EXPECT_EQ(progress_.summary("has failed", 2 * kSecond),
            "(4 ranks on 2 nodes) has failed after 2s: 0 operations, 0 B");
}

TEST(JobProgress, OneRankHasNoBusBandwidth) {
  JobNumbers numbers("alone", {0});
  JobProgress progress(numbers, 1, 1, 0);
  numbers.operations.add(1);
  numbers.all_reduce_bytes.add(1000);
  numbers.all_reduce_ns.add(1000);
  EXPECT_EQ(progress.take_line(kSecond, kSecond),
            "(1 rank on 1 node): 1 operation, 1 of them in the last 1s");
}

}  // namespace
}  // namespace braid
