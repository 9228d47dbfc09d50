// SPDX-License-Identifier: Apache-2.0
#include "job/submission_turns.h"

#include <memory>
#include <vector>

#include "loop/loop_testing.h"

namespace braid {
namespace {

class SubmissionTurnsTest : public testing::LoopTest {
 protected:
  // A trainer with so many entries in its ring.
  struct Ring {
    std::shared_ptr<Submitter> submitter = std::make_shared<Submitter>();
    size_t entries = 0;
    size_t taken = 0;
  };

  std::unique_ptr<Ring> ring_of(uint64_t job_key, size_t entries, uint32_t weight = 1) {
    auto ring = std::make_unique<Ring>();
    ring->entries = entries;
    ring->submitter->job_key = job_key;
    ring->submitter->weight = weight;
    ring->submitter->take = [this, self = ring.get()](size_t entries_max) {
      const size_t taken = std::min(entries_max, self->entries);
      self->entries -= taken;
      self->taken += taken;
      in_round_ += taken;
      return taken;
    };
    return ring;
  }
  // As rings do: who has entries asks in each round.
  void run_round(const std::vector<Ring*>& rings) {
    in_round_ = 0;
    for (Ring* ring : rings) {
      if (ring->entries != 0) turns_.ask(ring->submitter);
    }
    run_rounds(1);
  }

  SubmissionTurns turns_{*loop_};
  size_t in_round_ = 0;
};

TEST_F(SubmissionTurnsTest, ARoundTakesSoManyEntriesOfAllTogether) {
  std::vector<std::unique_ptr<Ring>> crowd;
  std::vector<Ring*> rings;
  for (int i = 0; i < 64; ++i) {
    crowd.push_back(ring_of(1 + i % 4, 1000));
    rings.push_back(crowd.back().get());
  }
  for (int round = 0; round < 20; ++round) {
    run_round(rings);
    EXPECT_EQ(in_round_, SubmissionTurns::kEntriesPerRound);
  }
}

TEST_F(SubmissionTurnsTest, OneEntryDoesNotWaitBehindFullRings) {
  std::vector<std::unique_ptr<Ring>> crowd;
  std::vector<Ring*> rings;
  for (int i = 0; i < 64; ++i) {
    crowd.push_back(ring_of(1, 10'000));
    rings.push_back(crowd.back().get());
  }
  run_round(rings);
  const auto other = ring_of(2, 1);
  rings.push_back(other.get());
  size_t before = 0;
  for (const auto& ring : crowd) before += ring->taken;
  while (other->taken == 0) run_round(rings);
  size_t after = 0;
  for (const auto& ring : crowd) after += ring->taken;
  EXPECT_LE(after - before, 2 * SubmissionTurns::kEntriesPerRound);
}

TEST_F(SubmissionTurnsTest, JobsShareByWeightHoweverManyTrainersTheyHave) {
  const auto light = ring_of(1, 100'000);
  std::vector<std::unique_ptr<Ring>> heavy;
  std::vector<Ring*> rings = {light.get()};
  for (int i = 0; i < 8; ++i) {
    heavy.push_back(ring_of(2, 100'000, 3));
    rings.push_back(heavy.back().get());
  }
  run_round(rings);  // who asks first has it for itself
  const size_t alone = light->taken;
  for (int round = 0; round < 100; ++round) run_round(rings);
  size_t of_heavy = 0;
  for (const auto& ring : heavy) of_heavy += ring->taken;
  EXPECT_NEAR(static_cast<double>(of_heavy), 3.0 * static_cast<double>(light->taken - alone), 200);
}

TEST_F(SubmissionTurnsTest, WhoHasLeftIsNotAsked) {
  const auto busy = ring_of(1, 1000);
  const auto leaver = ring_of(2, 1000);
  run_round({busy.get(), leaver.get()});
  const size_t taken = leaver->taken;
  leaver->submitter->take = nullptr;
  for (int round = 0; round < 10; ++round) run_round({busy.get()});
  EXPECT_EQ(busy->entries, 0u);
  EXPECT_EQ(leaver->taken, taken);
}

// Its own turn may be the end of it.
TEST_F(SubmissionTurnsTest, WhoLeavesInItsTurnHasNoOtherOne) {
  auto leaver = std::make_shared<Submitter>();
  int turns = 0;
  leaver->take = [&turns, leaver = leaver.get()](size_t entries_max) {
    ++turns;
    leaver->take = nullptr;
    return entries_max;
  };
  turns_.ask(leaver);
  run_rounds(3);
  EXPECT_EQ(turns, 1);
}

}  // namespace
}  // namespace braid
