// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks: what trainers submit is checked, and what other nodes say of them.
#include <cstring>

#include "base/errors_testing.h"
#include "job/manager_world.h"
#include "messages/rank_message.h"

namespace braid {
namespace {

using testing::is_error;

// Ranks 0 and 1 are here.
class LocalMessagesTest : public testing::JobManagerTest {
 protected:
  void submit(uint32_t rank, proto::SubmitKind kind, uint32_t peer, uint64_t bytes,
              const std::function<void(proto::SubmitEntry&)>& change = {}) {
    trainers_[rank]->submit(1, 0, 7, 0, [&](proto::SubmitEntry& entry) {
      entry.kind = static_cast<uint8_t>(kind);
      entry.root = peer;
      entry.count = bytes;
      if (change) change(entry);
    });
  }
};

TEST_F(LocalMessagesTest, BytesComeFromOneRankToTheOther) {
  open_job(2);
  std::memcpy(trainers_[0]->floats(), "sixteen bytes ..", 16);
  submit(1, proto::SubmitKind::Receive, proto::kAnyRank, 16);
  submit(0, proto::SubmitKind::Send, 1, 16);
  wait_for_all([](const testing::TestTrainer& one) { return one.done.size() == 1; });
  EXPECT_EQ(trainers_[0]->done[0].result_bytes, 0u);
  const proto::DoneEntry& received = trainers_[1]->done[0];
  EXPECT_EQ(received.result_bytes, 16u);
  EXPECT_EQ(received.source, 0u);
  EXPECT_EQ(std::memcmp(trainers_[1]->result(received), "sixteen bytes ..", 16), 0);
  for (const auto& trainer : trainers_) trainer->release(1);
  settle();
  EXPECT_EQ(statuses().size(), 1u);
}

TEST_F(LocalMessagesTest, WhatATrainerSaysOfAMessageIsChecked) {
  using Change = std::function<void(proto::SubmitEntry&)>;
  struct Wrong {
    proto::SubmitKind kind;
    uint32_t peer;
    uint64_t bytes;
    Change change;
    std::string_view named;
  };
  for (const Wrong& wrong : {
           Wrong{proto::SubmitKind::Send, 2, 16, {}, "rank 2"},
           Wrong{proto::SubmitKind::Send, 0, 16, {}, "rank 0"},
           Wrong{proto::SubmitKind::Receive, 0, 16, {}, "rank 0"},
           Wrong{proto::SubmitKind::Send, proto::kAnyRank, 16, {}, "4294967295"},
           Wrong{proto::SubmitKind::Send, 1, kTensorBytesMax + 1, {}, "too large"},
           Wrong{proto::SubmitKind::Send, 1, kTensorBytesMax, {}, "not inside the arena"},
           Wrong{proto::SubmitKind::Send, 1, 16, [](auto& entry) { entry.offset = UINT64_MAX; },
                 "not inside the arena"},
           Wrong{proto::SubmitKind::Send, 1, 16, [](auto& entry) { entry.arena = 9; }, "arena 9"},
           Wrong{proto::SubmitKind::Send, 1, 16, [](auto& entry) { entry.tensor = 3; }, "'tensor'"},
           Wrong{proto::SubmitKind::Receive, 1, 16, [](auto& entry) { entry.table = 8; },
                 "'table'"},
       }) {
    trainers_.clear();
    open_job(2);
    submit(0, wrong.kind, wrong.peer, wrong.bytes, wrong.change);
    EXPECT_NE(failure_of(*trainers_[1]).message().find(wrong.named), std::string::npos)
        << wrong.named;
  }
}

TEST_F(LocalMessagesTest, AMessageThatIsNotOverIsNotGivenBack) {
  open_job(2);
  submit(0, proto::SubmitKind::Receive, 1, 16);
  trainers_[0]->release(1);
  EXPECT_TRUE(is_error(failure_of(*trainers_[1]), StatusCode::Protocol, {"rank 0", "ticket 1"}));
}

// Rank 0 of three is here and sends to b, which coordinates; d has rank 2. The job runs.
class MessagesToOthersTest : public testing::JobManagerTest {
 protected:
  void start_job(const Algorithms& algorithms = {}) {
    trainer_ = &open_with_b(3, algorithms);
    transport_.opened.clear();
  }
  void submit(uint64_t ticket, proto::SubmitKind kind, uint32_t peer, uint32_t timeout_ms = 0) {
    trainer_->submit(ticket, 0, 7, 0, [&](proto::SubmitEntry& entry) {
      entry.kind = static_cast<uint8_t>(kind);
      entry.root = peer;
      entry.count = 16;
      entry.timeout_ms = timeout_ms;
    });
  }

  testing::TestTrainer* trainer_ = nullptr;
};

TEST_F(MessagesToOthersTest, TheFirstOneOpensTheLinkToItsNodeAlone) {
  start_job();
  transport_.holds_answers = true;
  submit(1, proto::SubmitKind::Send, 2);
  wait_for([&] { return !transport_.opened.empty(); });
  settle();
  EXPECT_TRUE(control_plane_.sent_to<proto::MessageOffered>(d_.id).empty());
  transport_.answer();
  const auto& offered = last_to<proto::MessageOffered>(d_);
  EXPECT_EQ(offered.from(), 0u);
  EXPECT_EQ(offered.to(), 2u);
  EXPECT_EQ(offered.tag(), 7u);
  EXPECT_EQ(offered.bytes(), 16u);
}

TEST_F(MessagesToOthersTest, AnOfferIsAcceptedByTheReceiversNode) {
  start_job({4096});
  submit(1, proto::SubmitKind::Receive, 2);
  settle();
  hear(d_, make_message_offered(kKey, {{2, 0, 0}, 7, 16}));
  EXPECT_EQ(last_to<proto::MessageAccepted>(d_).from(), 2u);
}

TEST_F(MessagesToOthersTest, WhatIsNoMembersIsNotHeard) {
  start_job({4096});
  submit(1, proto::SubmitKind::Receive, proto::kAnyRank);
  settle();
  hear(e_, make_message_offered(kKey, {{2, 0, 0}, 7, 16}));
  hear(e_, make_message_accepted(kKey, {0, 2, 0}));
  settle();
  EXPECT_TRUE(control_plane_.sent_to<proto::MessageAccepted>(e_.id).empty());
  EXPECT_EQ(sent_to_b<proto::FailJob>().size(), 0u);
}

TEST_F(MessagesToOthersTest, AnotherNodesRanksAreNotOfferedByAMember) {
  start_job({4096});
  hear(d_, make_message_offered(kKey, {{1, 0, 0}, 7, 16}));
  EXPECT_TRUE(is_error(failure_told_to_b(), StatusCode::Protocol, {"node 'd'", "rank 1"}));
}

TEST_F(MessagesToOthersTest, AReceiveFromARankThatHasLeftEndsTheJob) {
  start_job({4096});
  submit(1, proto::SubmitKind::Receive, 2);
  EXPECT_EQ(last_to<proto::LeaversAwaited>(b_).job_key(), kKey);
  const LeftRank left{2, "its script ended", SentMessages()};
  hear(d_, make_rank_has_left(kKey, left));
  settle();
  EXPECT_TRUE(sent_to_b<proto::FailJob>().empty()) << "not from the coordinator";
  hear(b_, make_rank_has_left(kKey, left));
  EXPECT_TRUE(is_error(failure_told_to_b(), StatusCode::JobFailed,
                       {"rank 2 on node 'd' left the job (its script ended)",
                        "receive of 16 bytes, tag 7", "rank 0 on node 'here'"}));
}

TEST_F(MessagesToOthersTest, ARankThatLeavesSaysWhatItHasSent) {
  start_job({4096});
  for (uint64_t ticket = 1; ticket <= 2; ++ticket) submit(ticket, proto::SubmitKind::Send, 2);
  wait_for([&] { return control_plane_.sent_to<proto::MessageOffered>(d_.id).size() == 2; });
  trainer_->leave();
  const LeftRank left = left_rank_of(last_to<proto::RankLeft>(b_));
  EXPECT_EQ(left.rank, 0u);
  EXPECT_EQ(left.sent, (SentMessages{{2, 2}}));
}

TEST_F(MessagesToOthersTest, AMissedDeadlineNamesBothEnds) {
  start_job({4096});
  submit(1, proto::SubmitKind::Receive, 2, 1);
  EXPECT_TRUE(is_error(
      failure_told_to_b(), StatusCode::DeadlineExceeded,
      {"receive of 16 bytes, tag 7", "rank 0 on node 'here'", "rank 2 on node 'd'", "1 ms"}));
}

}  // namespace
}  // namespace braid
