// SPDX-License-Identifier: Apache-2.0
#include "job/job_names.h"

#include <string>
#include <unordered_set>

#include <gtest/gtest.h>

#include "base/errors_testing.h"
#include "job/manager_world.h"
#include "job/open_request.h"

namespace braid {
namespace {

using testing::is_error;

TEST(JobNames, TwoAskersGetTwoNames) {
  JobNames names;
  EXPECT_EQ(names.give("train", {}, 0), "train");
  EXPECT_EQ(names.give("train", {}, 0), "train-2");
  EXPECT_EQ(names.give("train", {"train-3"}, 0), "train-4");
  EXPECT_EQ(names.give("train/tp0", {"train"}, 0), "train/tp0");
}

TEST(JobNames, ANameIsHeldUntilItsJobComesAndNoLongerThanAMinute) {
  JobNames names;
  EXPECT_EQ(names.give("train", {}, 0), "train");
  EXPECT_EQ(names.give("train", {}, JobNames::kHeldMs - 1), "train-2");
  EXPECT_EQ(names.give("train", {}, JobNames::kHeldMs), "train");
  names.came("train");
  EXPECT_EQ(names.give("train", {"train"}, JobNames::kHeldMs), "train-3");
  EXPECT_EQ(names.give("train", {}, JobNames::kHeldMs), "train");  // The job has ended.
}

TEST(JobNames, ANumberFitsBehindTheLongestName) {
  JobNames names;
  const std::string longest(OpenRequest::kJobNameBytesMax, 'x');
  EXPECT_EQ(names.give(longest, {}, 0), longest);
  EXPECT_EQ(names.give(longest, {}, 0), std::string(longest.size() - 2, 'x') + "-2");
}

TEST(JobNames, WhoAsksAllTheTimeHoldsABoundedNumber) {
  JobNames names;
  for (size_t index = 0; index <= JobNames::kHeldMax; ++index)
    names.give("job" + std::to_string(index), {}, index);
  const std::string last = "job" + std::to_string(JobNames::kHeldMax);
  EXPECT_EQ(names.give(last, {}, JobNames::kHeldMax), last + "-2");
  EXPECT_EQ(names.give("job0", {}, JobNames::kHeldMax), "job0");
}

class NameQueryTest : public testing::JobManagerTest {
 protected:
  std::string ask(testing::TestTrainer& trainer, const std::string& wanted) {
    trainer.ask_name(wanted);
    wait_for([&] { return !trainer.given_name.empty(); });
    return trainer.given_name;
  }
};

TEST_F(NameQueryTest, ANameBelongsToOneJob) {
  testing::TestTrainer& asker = add_trainer();
  EXPECT_EQ(ask(asker, "train"), "train");
  testing::TestTrainer& trainer = add_trainer();
  trainer.open("train", 0, 1, kThisNode, 60'000, 0, "secret");
  wait_for([&] { return trainer.is_open; });
  EXPECT_EQ(ask(asker, "train"), "train-2");
  trainer.leave();
  wait_for([&] { return trainer.has_left; });
  trainer.hang_up();
  settle();
  EXPECT_EQ(ask(asker, "train"), "train");
}

TEST_F(NameQueryTest, ANameThatNoJobCanHaveIsRefused) {
  add_trainer().ask_name("");
  EXPECT_TRUE(is_error(failure_of(*trainers_[0]), StatusCode::InvalidArgument, {"1 to 255 bytes"}));
  add_trainer().ask_name(std::string(256, 'x'));
  EXPECT_TRUE(is_error(failure_of(*trainers_[1]), StatusCode::InvalidArgument, {"not 256"}));
}

}  // namespace
}  // namespace braid
