// SPDX-License-Identifier: Apache-2.0
// A job whose first input arena is full registers further ones.
#include <set>
#include <thread>

#include "open_job_fixture.h"

namespace braid {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class ArenasTest : public OpenJobTest {
 protected:
  void SetUp() override { reopen({}); }
  // With room for more than the first arena.
  void reopen(TestDaemon::Options options, uint64_t arena_bytes = 1024 * kMiB) {
    open(std::move(options), 0, arena_bytes);
  }
  float* allocate(uint64_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(braid_allocate(job_, bytes, &memory), BRAID_OK) << braid_error_message();
    return static_cast<float*>(memory);
  }
  // What comes back of 10 numbers from there.
  std::vector<float> sent_from(uint32_t tensor, uint64_t step, float* memory) {
    std::iota(memory, memory + 10, static_cast<float>(step));
    const braid_ticket ticket = done(all_reduce(tensor, step, memory));
    return copied(ticket, 10);
  }
  static std::vector<float> from(float first) {
    std::vector<float> values(10);
    std::iota(values.begin(), values.end(), first);
    return values;
  }
};

TEST_F(ArenasTest, OperationsNameTheArenaOfTheirInput) {
  const uint32_t tensor = register_tensor(job_, "a", 10);
  float* const first = allocate(10 * kMiB);
  EXPECT_EQ(daemon_->arenas(), (std::vector<uint64_t>{16 * kMiB}));
  float* const second = allocate(40 * kMiB);
  EXPECT_EQ(daemon_->arenas(), (std::vector<uint64_t>{16 * kMiB, 64 * kMiB}));
  EXPECT_EQ(sent_from(tensor, 1, second), from(1));
  EXPECT_EQ(daemon_->seen().arena, 1u);
  EXPECT_EQ(sent_from(tensor, 2, first), from(2));
  EXPECT_EQ(daemon_->seen().arena, 0u);
  EXPECT_EQ(braid_free(job_, second), BRAID_OK);
  EXPECT_BRAID_ERROR(braid_free(job_, second), BRAID_ERROR_NOT_FOUND, "braid_allocate");
  allocate(60 * kMiB);
  EXPECT_EQ(daemon_->arenas().size(), 2u) << "what was given back is used again";
}

TEST_F(ArenasTest, CopiesOfInputsGoWhereThereIsRoom) {
  const uint32_t tensor = register_tensor(job_, "a", 10);
  allocate(16 * kMiB);
  std::vector<float> values(10);
  EXPECT_EQ(sent_from(tensor, 3, values.data()), from(3));
  EXPECT_EQ(daemon_->seen().arena, 1u);
}

TEST_F(ArenasTest, AnArenaIsAsLargeAsWhatItIsForAndItsTables) {
  allocate(65 * kMiB + 1);
  EXPECT_EQ(daemon_->arenas(), (std::vector<uint64_t>{16 * kMiB, 66 * kMiB + 4096}));
}

TEST_F(ArenasTest, AnArenaHasNoRoomForTablesWhereTheOptionsAllowNone) {
  reopen({}, 16 * kMiB);
  allocate(16 * kMiB);
  EXPECT_EQ(daemon_->arenas(), (std::vector<uint64_t>{16 * kMiB}));
}

TEST_F(ArenasTest, AllTogetherHaveNoMoreInUseThanTheOptionsSay) {
  reopen({}, 80 * kMiB);
  allocate(40 * kMiB);
  void* memory = nullptr;
  EXPECT_BRAID_ERROR(braid_allocate(job_, 41 * kMiB, &memory), BRAID_ERROR_RESOURCE_EXHAUSTED,
                     "arena_bytes");
  EXPECT_EQ(daemon_->arenas().size(), 2u);
  allocate(40 * kMiB);
  EXPECT_EQ(daemon_->arenas().size(), 3u);
  EXPECT_BRAID_ERROR(braid_allocate(job_, 1, &memory), BRAID_ERROR_RESOURCE_EXHAUSTED,
                     "arena_bytes");
}

TEST_F(ArenasTest, ARefusalLeavesTheJobAsItWas) {
  reopen({.refused_memory = "the daemon has given all it has"});
  const uint32_t tensor = register_tensor(job_, "a", 10);
  float* const first = allocate(10 * kMiB);
  for (int i = 0; i < 2; ++i) {
    void* memory = nullptr;
    EXPECT_BRAID_ERROR(braid_allocate(job_, 40 * kMiB, &memory), BRAID_ERROR_MISMATCH,
                       "the daemon has given all it has");
  }
  EXPECT_EQ(sent_from(tensor, 1, first), from(1));
}

TEST_F(ArenasTest, AnotherNumberThanTheNextEndsTheJob) {
  reopen({.arenas_skipped = 1});
  void* memory = nullptr;
  EXPECT_BRAID_ERROR(braid_allocate(job_, 40 * kMiB, &memory), BRAID_ERROR_PROTOCOL,
                     "braidd gave the input arena the number 2; expected was 1");
}

// The table of splits lies in the arena of the input; both are copied where that has no room.
TEST_F(ArenasTest, SplitsLieInTheArenaOfTheirInput) {
  const uint32_t tensor = register_dynamic(job_, "a");
  const uint64_t splits[] = {10};
  const auto exchanged = [&](uint64_t step, float* memory) {
    std::iota(memory, memory + 10, static_cast<float>(step));
    braid_operation operation = all_reduce(tensor, step, memory);
    operation.collective = BRAID_ALL_TO_ALL;
    operation.dtype = BRAID_FLOAT32;
    operation.input_splits = splits;
    operation.output_splits = splits;
    const braid_ticket ticket = done(operation);
    EXPECT_EQ(daemon_->seen().splits, (std::vector<uint64_t>{10, 10}));
    return copied(ticket, 10);
  };
  float* const beside = allocate(12 * kMiB);
  EXPECT_EQ(exchanged(1, beside), from(1));
  EXPECT_EQ(daemon_->arenas().size(), 1u);
  ASSERT_EQ(braid_free(job_, beside), BRAID_OK);
  float* const alone = allocate(16 * kMiB);
  EXPECT_EQ(exchanged(2, alone), from(2));
  EXPECT_EQ(daemon_->seen().arena, 1u);
  std::vector<float> elsewhere(10);
  EXPECT_EQ(exchanged(3, elsewhere.data()), from(3));
  EXPECT_EQ(daemon_->seen().arena, 1u);
  // An arena that was made for one block has room for tables beside it.
  float* const large = allocate(200 * kMiB);
  EXPECT_EQ(exchanged(4, large), from(4));
  EXPECT_EQ(daemon_->seen().arena, 2u);
  EXPECT_EQ(daemon_->arenas().size(), 3u);
}

TEST_F(ArenasTest, ThreadsThatNeedOneTogetherRegisterOne) {
  std::vector<void*> memory(6, nullptr);
  std::vector<std::thread> threads;
  for (void*& one : memory) {
    threads.emplace_back([&] { EXPECT_EQ(braid_allocate(job_, 10 * kMiB, &one), BRAID_OK); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<void*>(memory.begin(), memory.end()).size(), memory.size());
  EXPECT_EQ(daemon_->arenas().size(), 2u) << "one has room for one, the next for five";
}

}  // namespace
}  // namespace braid
