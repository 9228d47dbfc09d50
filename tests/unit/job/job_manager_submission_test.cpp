// SPDX-License-Identifier: Apache-2.0
// Submissions that make no sense end the job, and its trainers are told why.
#include <cstring>

#include "job/manager_world.h"

namespace braid {
namespace {

using testing::TestTrainer;

struct BadSubmission {
  const char* name;
  std::function<void(TestTrainer&)> submit;
  StatusCode code;
  const char* text;
};

class BadSubmissionTest : public testing::JobManagerTest,
                          public ::testing::WithParamInterface<BadSubmission> {};

TEST_P(BadSubmissionTest, FailsTheJobAndSaysWhy) {
  open_job(1);
  trainers_[0]->register_tensors({{"v", 4}});
  wait_for([&] { return trainers_[0]->registered.size() == 2; });
  GetParam().submit(*trainers_[0]);
  wait_for([this] { return !trainers_[0]->failure.is_ok(); });
  EXPECT_EQ(trainers_[0]->failure.code(), GetParam().code);
  EXPECT_EQ(trainers_[0]->failure.message(),
            std::string("job 'train': rank 0: ") + GetParam().text);
  wait_for([&] { return statuses().empty() || statuses()[0].state == "closed"; });
}

const BadSubmission kBadSubmissions[] = {
    {"UnknownTensor", [](TestTrainer& t) { t.submit(1, 2, 0); }, StatusCode::NotFound,
     "submitted tensor 2, which it has not registered"},
    {"StepTwice",
     [](TestTrainer& t) {
       t.submit(1, 0, 5);
       t.submit(2, 0, 5);
     },
     StatusCode::InvalidArgument, "submitted 'w' step 5 after step 5: steps of a tensor must grow"},
    {"OutsideTheArena", [](TestTrainer& t) { t.submit(1, 0, 0, TestTrainer::kArenaBytes - 12); },
     StatusCode::InvalidArgument,
     "'w' step 0: an input of 16 bytes at 1048564 is not inside the arena of 1048576 bytes, or not "
     "aligned"},
    {"OffsetThatOverflows", [](TestTrainer& t) { t.submit(1, 0, 0, UINT64_MAX - 3); },
     StatusCode::InvalidArgument,
     "'w' step 0: an input of 16 bytes at 18446744073709551612 is not inside the arena of 1048576 "
     "bytes, or not aligned"},
    {"NotAligned", [](TestTrainer& t) { t.submit(1, 0, 0, 2); }, StatusCode::InvalidArgument,
     "'w' step 0: an input of 16 bytes at 2 is not inside the arena of 1048576 bytes, or not "
     "aligned"},
    {"RootThatIsNone",
     [](TestTrainer& t) {
       t.submit(1, 0, 0, 0, [](proto::SubmitEntry& entry) {
         entry.collective = static_cast<uint8_t>(Collective::Broadcast);
         entry.root = 1;
       });
     },
     StatusCode::InvalidArgument, "'w' step 0: root 1 is no rank below 1"},
    {"SplitsOutsideTheArena",
     [](TestTrainer& t) {
       t.submit(1, 0, 0, 0, [](proto::SubmitEntry& entry) {
         entry.collective = static_cast<uint8_t>(Collective::AllToAll);
         entry.table = TestTrainer::kArenaBytes - 8;
       });
     },
     StatusCode::InvalidArgument,
     "'w' step 0: a table of splits of 16 bytes at 1048568 is not inside the arena of 1048576 "
     "bytes, or not aligned to 8"},
    {"SplitsThatOverflow",
     [](TestTrainer& t) {
       const uint64_t splits[] = {uint64_t{1} << 62, 4};
       std::memcpy(t.floats(64), splits, sizeof(splits));
       t.submit(1, 0, 0, 0, [](proto::SubmitEntry& entry) {
         entry.collective = static_cast<uint8_t>(Collective::AllToAll);
         entry.table = 64;
       });
     },
     StatusCode::InvalidArgument,
     "'w' step 0: all-to-all of float32 with splits of more than 281474976710656 bytes"},
    {"InputOfSplitsOutsideTheArena",
     [](TestTrainer& t) {
       const uint64_t splits[] = {4, 4};
       std::memcpy(t.floats(64), splits, sizeof(splits));
       t.submit(1, 0, 0, TestTrainer::kArenaBytes - 8, [](proto::SubmitEntry& entry) {
         entry.collective = static_cast<uint8_t>(Collective::AllToAll);
         entry.table = 64;
       });
     },
     StatusCode::InvalidArgument,
     "'w' step 0: an input of 16 bytes at 1048568 is not inside the arena of 1048576 bytes, or not "
     "aligned"},
    {"TicketTwice",
     [](TestTrainer& t) {
       t.submit(1, 0, 0);
       t.submit(1, 1, 0);
     },
     StatusCode::Protocol, "used ticket 1 twice"},
    {"TicketThatItDoesNotHold", [](TestTrainer& t) { t.release(9); }, StatusCode::Protocol,
     "gave back ticket 9, which it does not hold"},
    {"ReservedThatIsNotZero",
     [](TestTrainer& t) {
       t.submit(1, 0, 0, 0, [](proto::SubmitEntry& entry) { entry.reserved = 1; });
     },
     StatusCode::Protocol, "'reserved' of a submission is reserved and must be 0, not 1"},
    {"UnknownArena",
     [](TestTrainer& t) {
       t.submit(1, 0, 0, 0, [](proto::SubmitEntry& entry) { entry.arena = 1; });
     },
     StatusCode::NotFound,
     "submitted 'w' step 0 in arena 1; it has registered 1, counted from 0 (RegisterMemory)"},
    {"ArenaThatIsNoNumber",
     [](TestTrainer& t) {
       t.submit(1, 0, 0, 0, [](proto::SubmitEntry& entry) {
         entry.collective = static_cast<uint8_t>(Collective::Barrier);
         entry.arena = UINT32_MAX;
       });
     },
     StatusCode::NotFound,
     "submitted 'w' step 0 in arena 4294967295; it has registered 1, counted from 0 "
     "(RegisterMemory)"},
    {"StepThatIsNoNumberOfAStep", [](TestTrainer& t) { t.submit(1, 0, kStepNumberMax + 1); },
     StatusCode::Protocol, "a submission with the impossible step 4611686018427387905"},
    {"ImpossibleCollective",
     [](TestTrainer& t) {
       t.submit(1, 0, 0, 0, [](proto::SubmitEntry& entry) { entry.collective = 99; });
     },
     StatusCode::Protocol, "a submission with the impossible collective 99"},
};

INSTANTIATE_TEST_SUITE_P(All, BadSubmissionTest, ::testing::ValuesIn(kBadSubmissions),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace braid
