// SPDX-License-Identifier: Apache-2.0
#include "job/job_duels.h"

#include <gtest/gtest.h>

#include "control/fake_control_plane.h"
#include "loop/loop_testing.h"

namespace braid {
namespace {

using proto::DuelSubject;
using testing::FakeControlPlane;

constexpr uint64_t kUs = 1'000;

// A job of two nodes, of which this one may lead; each operation takes what the test says of the
// subjects whose rival holds.
class JobDuelsTest : public testing::LoopTest {
 protected:
  JobDuelsTest() { control_plane_.add_peer(b_); }

  void lead(uint32_t first_rank = 0) {
    membership_.key = 7;
    membership_.nodes = {{self_, {first_rank}}, {b_, {1 - first_rank}}};
    membership_.local_ranks = {first_rank};
    duels_.emplace(control_plane_, membership_,
                   JobDuels::Subjects{subject(DuelSubject::Flows), subject(DuelSubject::Polling)});
  }
  JobDuels::Subject subject(DuelSubject which) {
    const auto i = static_cast<size_t>(which);
    return {[this, i] { return may_try_[i]; }, [this, i](bool rival) { is_rival_[i] = rival; }};
  }
  // What was told to b is also what this node hears.
  void run_operation() {
    uint64_t took_ns = 1'000 * kUs;
    for (size_t i = 0; i < is_rival_.size(); ++i) {
      if (is_rival_[i]) took_ns = took_ns * rival_percent_[i] / 100;
    }
    duels_->on_operation(now_ns_ += took_ns);
    for (; heard_ < control_plane_.sent.size(); ++heard_) {
      const auto& sent = control_plane_.sent[heard_];
      if (sent.to == b_.id) duels_->on_switch(*sent.as<proto::DuelSwitch>());
    }
  }
  // Returns whether both were tried at once.
  bool run_until_both_are_known() {
    bool both = false;
    while (found(DuelSubject::Polling).duels == 0 || found(DuelSubject::Flows).duels == 0) {
      run_operation();
      both = both || (is_rival_[0] && is_rival_[1] && found(DuelSubject::Flows).duels == 0);
    }
    return both;
  }
  const OperationDuel::Finding& found(DuelSubject which) const { return duels_->finding(which); }

  const Peer self_{1, "here", "10.0.0.1", 7410};
  const Peer b_{20, "b", "10.0.0.20", 7410};
  FakeControlPlane control_plane_{*loop_, self_};
  Membership membership_;
  std::array<bool, 2> may_try_ = {true, true};
  std::array<bool, 2> is_rival_ = {false, false};
  std::array<uint64_t, 2> rival_percent_ = {100, 100};
  std::optional<JobDuels> duels_;
  size_t heard_ = 0;
  uint64_t now_ns_ = 1'000'000'000'000;
};

TEST_F(JobDuelsTest, EachSubjectIsDecidedByItself) {
  lead();
  rival_percent_ = {60, 150};
  EXPECT_FALSE(run_until_both_are_known()) << "one is tried at a time";
  EXPECT_FALSE(found(DuelSubject::Polling).pays);
  EXPECT_NEAR(found(DuelSubject::Polling).gain, 1 / 1.5, 0.01);
  EXPECT_TRUE(found(DuelSubject::Flows).pays);
  EXPECT_NEAR(found(DuelSubject::Flows).gain, 1 / 0.6, 0.01);
  EXPECT_FALSE(is_rival_[1]);
  EXPECT_TRUE(is_rival_[0]);
}

TEST_F(JobDuelsTest, AllNodesAreTold) {
  lead();
  run_until_both_are_known();
  EXPECT_EQ(control_plane_.sent_to<proto::DuelSwitch>(self_.id).size(),
            control_plane_.sent_to<proto::DuelSwitch>(b_.id).size());
}

TEST_F(JobDuelsTest, OnlyTheCoordinatorsNodeTries) {
  lead(1);
  for (int i = 0; i < 10'000; ++i) run_operation();
  EXPECT_TRUE(control_plane_.sent.empty());
}

TEST_F(JobDuelsTest, WhatMayNotBeTriedIsNot) {
  may_try_ = {true, false};
  lead();
  while (found(DuelSubject::Flows).duels == 0) run_operation();
  EXPECT_EQ(found(DuelSubject::Polling), OperationDuel::Finding{});
}

TEST_F(JobDuelsTest, ARivalThatMayNotBeTriedAnyMoreGivesWay) {
  lead();
  rival_percent_ = {60, 150};
  run_until_both_are_known();
  ASSERT_TRUE(is_rival_[0]);
  may_try_[0] = false;
  run_operation();
  EXPECT_FALSE(is_rival_[0]);
  EXPECT_EQ(found(DuelSubject::Flows), OperationDuel::Finding{});
  may_try_[0] = true;
  for (int i = 0; i < 100'000; ++i) run_operation();
  EXPECT_FALSE(is_rival_[0]) << "for good";
}

TEST_F(JobDuelsTest, ASubjectThatThisVersionDoesNotKnowIsPassedOver) {
  lead(1);
  auto message = make_duel_switch(7, {static_cast<DuelSubject>(9), true, true, 2, 1});
  duels_->on_switch(*flatbuffers::GetRoot<proto::ControlMessage>(message.GetBufferPointer())
                         ->body_as_DuelSwitch());
  EXPECT_FALSE(is_rival_[0] || is_rival_[1]);
}

}  // namespace
}  // namespace braid
