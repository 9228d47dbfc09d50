// SPDX-License-Identifier: Apache-2.0
// Trainers that choose names and counts so that hashes without a key are equal: what stands for
// them must not be taken for them.
#include <algorithm>

#include "base/errors_testing.h"
#include "base/hash.h"
#include "job/manager_world.h"
#include "messages/colliding_names.h"

namespace braid {
namespace {

using testing::names;
using testing::TestTrainer;

// What mix64 makes `mixed` of.
constexpr uint64_t unmix64(uint64_t mixed) {
  uint64_t x = mixed ^ mixed >> 31 ^ mixed >> 62;
  x *= 0x319642b2d24d8ec3ULL;
  x = x ^ x >> 27 ^ x >> 54;
  x *= 0x96de1b173f119089ULL;
  return x ^ x >> 30 ^ x >> 60;
}
static_assert(unmix64(mix64(0x123456789abcdefULL)) == 0x123456789abcdefULL);

using Tensors = std::vector<std::pair<std::string, uint64_t>>;

// A set's id as anybody could compute it while it had no key.
uint64_t add_to_set(uint64_t set, const std::string& name, uint64_t count) {
  return mix64(mix64(set ^ mix64(fnv1a64(name) + count)));
}

// The count that gives `tensors`, which end with one of this name, the id `wanted`.
uint64_t count_for(uint64_t wanted, const Tensors& others, const std::string& name) {
  uint64_t set = fnv1a64("set");
  for (const auto& [other, count] : others) set = add_to_set(set, other, count);
  return unmix64(unmix64(unmix64(wanted)) ^ set) - fnv1a64(name);
}

uint64_t set_of(const Tensors& tensors) {
  uint64_t set = fnv1a64("set");
  for (const auto& [name, count] : tensors) set = add_to_set(set, name, count);
  return set;
}

// A tensor that a trainer may register, and that gives `others`, with it at the end, the id
// `wanted`.
std::pair<std::string, uint64_t> crafted(uint64_t wanted, const Tensors& others,
                                         const std::string& stem) {
  for (uint64_t i = 0;; ++i) {  // one name in some 2^18 has a count that a tensor may have
    const std::string name = stem + std::to_string(i);
    const uint64_t count = count_for(wanted, others, name);
    if (count <= kTensorBytesMax / sizeof(float)) return {name, count};
  }
}

class JobManagerCollisionTest : public testing::JobManagerTest {
 protected:
  void register_planned(TestTrainer& trainer, const Tensors& tensors) {
    const size_t before = trainer.registered.size();
    trainer.register_tensors(tensors, DataType::Float32, true);
    wait_for([&] { return trainer.registered.size() > before || !trainer.refusal.empty(); });
  }
};

// One set was taken for the other, which does not have the tensor that is submitted.
TEST_F(JobManagerCollisionTest, ASetIsNotTakenForAnotherOfTheSameTrainer) {
  open_job(1);
  const Tensors second = {{"b", 10}};
  const Tensors first = {crafted(set_of(second), {}, "a")};
  ASSERT_EQ(set_of(first), set_of(second));
  register_planned(*trainers_[0], first);
  register_planned(*trainers_[0], second);
  ASSERT_EQ(trainers_[0]->registered.size(), 3u) << trainers_[0]->refusal;
  std::fill_n(trainers_[0]->floats(), 10, 3.0f);
  trainers_[0]->submit(1, 2, 0);
  wait_for([&] { return !trainers_[0]->done.empty() || !trainers_[0]->failure.is_ok(); });
  ASSERT_TRUE(trainers_[0]->failure.is_ok()) << trainers_[0]->failure.message();
  EXPECT_EQ(trainers_[0]->done[0].result_bytes, 40u);
  EXPECT_EQ(trainers_[0]->result(trainers_[0]->done[0])[9], 3.0f);
}

// As many elements were read of the second rank's 'a' as the first rank had registered: what lies
// behind its arena, whosever it is.
TEST_F(JobManagerCollisionTest, ARanksInputIsReadAsFarAsItHasRegisteredIt) {
  open_job(2);
  const Tensors honest = {{"a", 100'000}, {"c", 4}, {"alone", 2'000'000}};
  Tensors forged = {{"a", 4}, {"c", 4}};
  forged.push_back(crafted(set_of(honest), forged, "alone"));
  ASSERT_EQ(set_of(honest), set_of(forged));
  register_planned(*trainers_[0], honest);
  register_planned(*trainers_[1], forged);
  EXPECT_TRUE(names(trainers_[1]->refusal, {"rank 1 registers 'a' (float32 × 4) among 3 planned"}));
  constexpr uint64_t kEnd = TestTrainer::kArenaBytes - 16;
  trainers_[0]->submit(1, 1, 0, 0);
  trainers_[0]->submit(2, 2, 0, 400'000);
  trainers_[1]->submit(1, 1, 0, kEnd);
  trainers_[1]->submit(2, 2, 0, kEnd);
  wait_for([&] { return !trainers_[1]->failure.is_ok() || !trainers_[1]->done.empty(); });
  EXPECT_TRUE(trainers_[1]->done.empty());
  EXPECT_TRUE(names(trainers_[1]->failure.message(), {"rank 1", "tensor 1"}));
}

TEST_F(JobManagerCollisionTest, NamesAreNotTakenForEachOther) {
  ASSERT_EQ(fnv1a64(kOneName), fnv1a64(kAnother));
  open_job(2);
  for (auto& trainer : trainers_) trainer->register_tensors({{kOneName, 4}, {kAnother, 4}});
  wait_for_all([](const auto& trainer) {
    return trainer.registered.size() == 2 || !trainer.refusal.empty();
  });
  ASSERT_EQ(trainers_[0]->refusal, "");
  for (uint32_t rank = 0; rank < 2; ++rank) {
    std::fill_n(trainers_[rank]->floats(0), 4, 1.0f);
    std::fill_n(trainers_[rank]->floats(64), 4, 10.0f);
    // In another order on each.
    trainers_[rank]->submit(1, 1 + rank, 0, 64 * rank);
    trainers_[rank]->submit(2, 2 - rank, 0, 64 - 64 * rank);
  }
  wait_for([&] { return trainers_[0]->done.size() == 2 && trainers_[1]->done.size() == 2; });
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (const proto::DoneEntry& done : trainers_[rank]->done)
      EXPECT_EQ(trainers_[rank]->result(done)[0], done.ticket == 1 + rank ? 2.0f : 20.0f);
  }
}

}  // namespace
}  // namespace braid
