// SPDX-License-Identifier: Apache-2.0
// Jobs belong to somebody: others can neither join them nor stop them.
#include "base/errors_testing.h"
#include "coordinator/coordinator_testing.h"

namespace braid {
namespace {

using testing::is_error;

class CoordinatorOwnerTest : public testing::CoordinatorTest {
 protected:
  static JobOwner owner_of(uint8_t who) {
    JobOwner owner{};
    owner.fill(who);
    return owner;
  }
  void join_as(uint8_t who, const Peer& from, uint32_t rank, uint32_t world_size = 2,
               uint32_t timeout_ms = kLongMs) {
    join(from, rank, world_size, timeout_ms, "train", 1, owner_of(who), who);
  }
};

TEST_F(CoordinatorOwnerTest, RanksOfAnotherOwnerFormAJobOfTheirOwn) {
  join_as(1, a_, 0);
  join_as(2, b_, 1);  // the rank that is missing, with a token that is not the job's
  EXPECT_TRUE(control_plane_.sent.empty());
  join_as(1, d_, 1);
  const proto::JobStart& start = start_at(a_);
  ASSERT_EQ(start.nodes()->size(), 2u);
  EXPECT_EQ(start.nodes()->Get(1)->node_id(), d_.id);
  EXPECT_EQ(*parse_job_owner(start.owner()), owner_of(1));
  EXPECT_TRUE(sent_to<proto::JobStart>(b_).empty());
  EXPECT_TRUE(sent_to<proto::JobFailed>(b_).empty());  // it may have partners of its own
}

TEST_F(CoordinatorOwnerTest, TheSameRankOfAnotherOwnerHurtsNobody) {
  join_as(2, b_, 0);  // came first
  join_as(1, a_, 0);
  join_as(2, b_, 0);  // contradicts itself alone
  const auto failures = sent_to<proto::JobFailed>(b_);
  ASSERT_FALSE(failures.empty());
  EXPECT_EQ(failures[0]->code(), static_cast<uint8_t>(StatusCode::AlreadyExists));
  EXPECT_TRUE(sent_to<proto::JobFailed>(a_).empty());
  join_as(1, a_, 1);
  EXPECT_EQ(sent_to<proto::JobStart>(a_).size(), 1u);
}

TEST_F(CoordinatorOwnerTest, AMemberOfANamesakeCannotFailAFormingJob) {
  join_as(1, a_, 0);
  join_as(2, b_, 1);
  const Status reason(StatusCode::JobFailed, "not mine");
  tell(b_, make_fail_job(0, "train", reason, owner_of(1)));  // no member of that one
  tell(b_, make_fail_job(0, "train", reason, owner_of(2)));
  EXPECT_TRUE(sent_to<proto::JobFailed>(a_).empty());
  ASSERT_EQ(sent_to<proto::JobFailed>(b_).size(), 1u);
  EXPECT_EQ(*parse_job_owner(sent_to<proto::JobFailed>(b_)[0]->owner()), owner_of(2));
  join_as(1, a_, 1);
  EXPECT_EQ(sent_to<proto::JobStart>(a_).size(), 1u);
}

TEST_F(CoordinatorOwnerTest, WhoWaitsInVainIsToldWhoBelongsTogether) {
  join_as(1, a_, 0, 2, 1);
  join_as(2, b_, 1, 2, kLongMs);
  run_until([&] { return !sent_to<proto::JobFailed>(a_).empty(); });
  EXPECT_TRUE(is_error(failure_of(a_), StatusCode::DeadlineExceeded,
                       {"2 ranks", "1 ms", "rank 1", "BRAID_JOB_TOKEN"}));
  EXPECT_TRUE(sent_to<proto::JobFailed>(b_).empty());
}

TEST_F(CoordinatorOwnerTest, AJoinWithoutAnOwnerIsRefused) {
  ControlBuffer builder;
  const auto name = builder.CreateString("train");
  const auto body = proto::CreateJoinJob(builder, name, 2, 0, 1, kLongMs, 0, 0, 0, 1);
  builder.Finish(proto::CreateControlMessage(builder, proto::ControlBody::JoinJob, body.Union()));
  tell(a_, std::move(builder));
  EXPECT_EQ(failure_of(a_).code(), StatusCode::Protocol);
}

TEST_F(CoordinatorOwnerTest, OneUserCannotTakeAllPlaces) {
  for (size_t i = 0; i < FormingJobs::kJobsPerUserMax; ++i)
    join(a_, 0, 2, kLongMs, "job " + std::to_string(i), 1, {}, 1000);
  EXPECT_TRUE(control_plane_.sent.empty());
  join(a_, 0, 2, kLongMs, "one too many", 1, {}, 1000);
  EXPECT_TRUE(is_error(failure_of(a_), StatusCode::ResourceExhausted, {"256 jobs of user 1000"}));
  join(b_, 0, 2, kLongMs, "another user's", 1, {}, 1001);
  EXPECT_TRUE(sent_to<proto::JobFailed>(b_).empty());
}

}  // namespace
}  // namespace braid
