// SPDX-License-Identifier: Apache-2.0
// Submissions that make no sense end the job, and its trainers are told why.
#include <cstring>

#include "base/errors_testing.h"
#include "job/manager_world.h"

namespace braid {
namespace {

using testing::is_error;
using testing::names;
using testing::TestTrainer;

using proto::SubmitEntry;

// One of the first tensor, 'w', in step 0, that is changed.
struct BadSubmission {
  const char* name;
  std::function<void(SubmitEntry&)> change;
  StatusCode code;
  std::vector<const char*> named;
  bool has_predecessor = false;  // that is right: with ticket 1, in step 0
};

class BadSubmissionTest : public testing::JobManagerTest,
                          public ::testing::WithParamInterface<BadSubmission> {};

constexpr uint64_t kSplits = 64, kHugeSplits = 128;  // where the arena has them

TEST_P(BadSubmissionTest, FailsTheJobAndSaysWhy) {
  open_job(1);
  TestTrainer& trainer = *trainers_[0];
  trainer.register_tensors({{"v", 4}});
  wait_for([&] { return trainer.registered.size() == 2; });
  const uint64_t splits[] = {4, 4}, huge_splits[] = {uint64_t{1} << 62, 4};
  std::memcpy(trainer.floats(kSplits), splits, sizeof(splits));
  std::memcpy(trainer.floats(kHugeSplits), huge_splits, sizeof(huge_splits));
  if (GetParam().has_predecessor) trainer.submit(1, 0, 0);
  trainer.submit(2, 0, 0, 0, GetParam().change);
  EXPECT_TRUE(is_error(failure_of(trainer), GetParam().code, {"job 'train': rank 0: "}));
  for (const char* const one : GetParam().named)
    EXPECT_TRUE(names(trainer.failure.message(), {one}));
  wait_for([&] { return statuses().empty() || statuses()[0].state == "closed"; });
}

std::function<void(SubmitEntry&)> all_to_all(uint64_t table, uint64_t offset = 0) {
  return [=](SubmitEntry& e) {
    e.collective = static_cast<uint8_t>(Collective::AllToAll);
    e.table = table;
    e.offset = offset;
  };
}

constexpr auto kInvalid = StatusCode::InvalidArgument;
const BadSubmission kBadSubmissions[] = {
    {"UnknownTensor", [](auto& e) { e.tensor = 2; }, StatusCode::NotFound, {"tensor 2"}},
    {"StepTwice", [](auto&) {}, kInvalid, {"'w' step 0 after step 0"}, true},
    {"OutsideTheArena",
     [](auto& e) { e.offset = TestTrainer::kArenaBytes - 12; },
     kInvalid,
     {"'w' step 0", "16 bytes at 1048564", "arena of 1048576 bytes"}},
    {"OffsetThatOverflows",
     [](auto& e) { e.offset = UINT64_MAX - 3; },
     kInvalid,
     {"16 bytes at 18446744073709551612", "arena of 1048576 bytes"}},
    {"NotAligned", [](auto& e) { e.offset = 2; }, kInvalid, {"16 bytes at 2 ", "not aligned"}},
    {"RootThatIsNone",
     [](auto& e) {
       e.collective = static_cast<uint8_t>(Collective::Broadcast);
       e.root = 1;
     },
     kInvalid,
     {"'w' step 0", "root 1"}},
    {"SplitsOutsideTheArena",
     all_to_all(TestTrainer::kArenaBytes - 8),
     kInvalid,
     {"table of splits of 16 bytes at 1048568", "arena of 1048576 bytes"}},
    {"SplitsThatOverflow", all_to_all(kHugeSplits), kInvalid, {"281474976710656 bytes"}},
    {"InputOfSplitsOutsideTheArena",
     all_to_all(kSplits, TestTrainer::kArenaBytes - 8),
     kInvalid,
     {"input of 16 bytes at 1048568", "arena of 1048576 bytes"}},
    {"TicketTwice",
     [](auto& e) { e.ticket = e.tensor = 1; },
     StatusCode::Protocol,
     {"ticket 1 twice"},
     true},
    {"TicketThatItDoesNotHold",
     [](auto& e) {
       e = {};
       e.kind = static_cast<uint8_t>(proto::SubmitKind::Release);
       e.ticket = 9;
     },
     StatusCode::Protocol,
     {"ticket 9"}},
    {"ReservedThatIsNotZero", [](auto& e) { e.reserved = 1; }, StatusCode::Protocol, {"reserved"}},
    {"UnknownArena", [](auto& e) { e.arena = 1; }, StatusCode::NotFound, {"'w' step 0 in arena 1"}},
    {"ArenaThatIsNoNumber",
     [](auto& e) {
       e.collective = static_cast<uint8_t>(Collective::Barrier);
       e.arena = UINT32_MAX;
     },
     StatusCode::NotFound,
     {"'w' step 0 in arena 4294967295"}},
    {"StepThatIsNoNumberOfAStep",
     [](auto& e) { e.step = kStepNumberMax + 1; },
     StatusCode::Protocol,
     {"step 4611686018427387905"}},
    {"ImpossibleCollective",
     [](auto& e) { e.collective = 99; },
     StatusCode::Protocol,
     {"collective 99"}},
};

INSTANTIATE_TEST_SUITE_P(All, BadSubmissionTest, ::testing::ValuesIn(kBadSubmissions),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace braid
