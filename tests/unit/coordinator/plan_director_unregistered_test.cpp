// SPDX-License-Identifier: Apache-2.0
// Sets that some nodes, then all, have no more.
#include "coordinator/plan_director_tuning_testing.h"

namespace braid {
namespace {

using testing::as_message;
using testing::PlanDirectorTuningTest;

class PlanDirectorUnregisteredTest : public PlanDirectorTuningTest {
 protected:
  void unregister(NodeId from) {
    auto message = make_set_unregistered(9, set_);
    director_->on_control_message(from, as_message(message));
  }
  void unregister_all() {
    for (const NodeId node : kNodes) unregister(node);
  }
};

TEST_F(PlanDirectorUnregisteredTest, AreForgottenWhenAllNodesSaySo) {
  make();
  run_first();
  unregister_all();
  sent_.clear();
  // It would be plan 2 of a set that is known.
  PlanReport again = report(0);
  add_units(again);
  tell_all(again);
  EXPECT_EQ(proposed().number, 1u);
}

TEST_F(PlanDirectorUnregisteredTest, MakeRoomForOthers) {
  make();
  for (set_ = 1; set_ <= 2 * PlanDirector::kSetsMax; ++set_) {
    tell_all(report(0));
    unregister_all();
  }
  PlanReport first = report(0);
  add_units(first);
  tell_all(first);
  EXPECT_EQ(proposed().set, set_);
}

TEST_F(PlanDirectorUnregisteredTest, GetNoPlanFromTheFirstNodeOn) {
  make();
  unregister(10);  // of a set that was never heard of
  PlanReport first = report(0);
  add_units(first);
  tell(10, first);
  unregister(10);
  tell(20, first);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(PlanDirectorUnregisteredTest, EndTheProposalThatIsOnItsWay) {
  make();
  PlanReport first = report(0);
  add_units(first);
  tell_all(first);
  const uint32_t number = proposed().number;
  unregister(10);
  EXPECT_EQ(verdicts(), (std::vector<bool>{false, false}));
  sent_.clear();
  answer(20, number, true);
  unregister(20);
  answer(20, number, true);
  EXPECT_TRUE(sent_.empty());
}

// Both nodes would refuse it for ever.
TEST_F(PlanDirectorUnregisteredTest, KeepTheirCodecs) {
  PlanningOptions options;
  options.guard.every_steps = 10;
  options.guard.saturation_max = 0.5;
  GuardBoard board;
  options.guard.board = &board;
  start(options);
  const auto read = [&] {
    step_ += 10;
    for (const NodeId node : kNodes) {
      CodecSample sample;
      sample.job_key = 9;
      sample.set = set_;
      sample.step = step_;
      sample.tensors = {100, 101};
      sample.codec = *parse_codec_spec("2bit:threshold=0.25");
      sample.loss.elements = 100;
      sample.loss.saturated = 90;
      auto message = make_codec_sample(sample);
      director_->on_control_message(node, as_message(message));
    }
  };
  read();
  read();
  EXPECT_FALSE(director_->guard().readings().empty());
  unregister(10);
  read();
  EXPECT_TRUE(sent_.empty());
  set_ = kOtherSet;
  read();
  EXPECT_FALSE(director_->guard().readings().empty());
  unregister_all();
  EXPECT_TRUE(director_->guard().readings().empty());
  director_.reset();  // it has the board
}

TEST_F(PlanDirectorUnregisteredTest, EndTheirTuningAndOthersFollow) {
  make_tuned();
  register_all();
  run_first();
  tell_all(report(1));
  EXPECT_TRUE(proposed().settings.has_value());
  unregister(10);
  EXPECT_EQ(verdicts(), (std::vector<bool>{false, false}));
  unregister(20);
  EXPECT_EQ(director_->tuning_json(), "[]");
  sent_.clear();
  set_ = kOtherSet;
  register_all(78);
  run_first();
  tell_all(report(1));
  EXPECT_TRUE(proposed().settings.has_value());
  EXPECT_EQ(proposed().set, kOtherSet);
}

}  // namespace
}  // namespace braid
