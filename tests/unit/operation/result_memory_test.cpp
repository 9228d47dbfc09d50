// SPDX-License-Identifier: Apache-2.0
#include "operation/result_memory.h"

#include <algorithm>
#include <future>
#include <set>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errors_testing.h"
#include "loop/loop_testing.h"
#include "operation/share_memory.h"

namespace braid {
namespace {

using testing::is_error;

constexpr uint64_t kMiB = 1 << 20;

// This process's descriptors of the same file.
std::vector<int> descriptors_of(int fd) {
  struct stat file {};
  EXPECT_EQ(::fstat(fd, &file), 0);
  std::vector<int> found;
  for (int other = 0; other < 1024; ++other) {
    struct stat info {};
    if (::fstat(other, &info) == 0 && info.st_ino == file.st_ino && info.st_dev == file.st_dev)
      found.push_back(other);
  }
  return found;
}

// For one that has gone already.
int readers_fd(ResultMemory& memory) {
  const int fd = memory.fd_for_reader();
  memory.on_reader_gone();
  return fd;
}

// No descriptor of it is for writing any more: it can be neither reserved nor given back.
void read_only(ResultMemory& memory) {
  const int readers = readers_fd(memory);
  for (const int fd : descriptors_of(readers))
    EXPECT_TRUE(fd == readers || ::dup3(readers, fd, O_CLOEXEC) == fd);
}

uint64_t pages_of(int fd) {
  struct stat info {};
  EXPECT_EQ(::fstat(fd, &info), 0);
  return static_cast<uint64_t>(info.st_blocks) * 512;
}
uint64_t pages_of(ResultMemory& memory) { return pages_of(readers_fd(memory)); }

std::shared_ptr<UserQuotas> quotas_of(uint64_t memory_of_user) {
  UserLimits limits;
  limits.memory_of_user = memory_of_user;
  return std::make_shared<UserQuotas>(limits, std::set<uid_t>{});
}

class ResultMemoryTest : public testing::LoopTest {
 protected:
  std::shared_ptr<ResultMemory> make(uint64_t bytes) {
    auto memory = ResultMemory::create(worker_, "train", bytes, {});
    EXPECT_TRUE(memory.is_ok()) << memory.status().message();
    return std::move(memory).value();
  }
  void wait_for_memory(const ResultMemory& memory, uint64_t offset, uint64_t bytes) {
    run_until([&] { return memory.has_memory(offset, bytes); });
  }

  // An extent whose memory is there.
  uint64_t take(ResultMemory& memory, uint64_t bytes) {
    const auto offset = memory.allocate(bytes);
    EXPECT_TRUE(offset.is_ok()) << offset.status().message();
    wait_for_memory(memory, *offset, bytes);
    return *offset;
  }
  // What the thread and the loop have to do until now.
  void settle() {
    for (int i = 0; i < 3; ++i) {
      bool is_over = false;
      EXPECT_TRUE(worker_.run([] {}, [&] { is_over = true; }));
      run_until([&] { return is_over; });
    }
  }
  // The thread does nothing more until release_ has a value.
  void block() {
    worker_.post([wait = release_.get_future().share()] { wait.wait(); });
  }
  void pass_rounds(ResultMemory& memory, uint32_t rounds) {
    for (uint32_t i = 0; i < rounds; ++i) {
      memory.pass_round();
      settle();
    }
  }

  std::promise<void> release_;
  WorkThread worker_{*loop_, "work"};
};

TEST_F(ResultMemoryTest, ExtentsDoNotOverlapAndCanBeWritten) {
  const auto memory = make(1 << 20);
  EXPECT_EQ(memory->size(), 1u << 20);
  const uint64_t first = take(*memory, 1000);
  const uint64_t second = take(*memory, 1000);
  std::fill_n(memory->data() + first, 1000, uint8_t{1});
  std::fill_n(memory->data() + second, 1000, uint8_t{2});
  EXPECT_EQ(std::count(memory->data() + first, memory->data() + first + 1000, 1), 1000);
  EXPECT_EQ(second % 64, 0u);
}

TEST_F(ResultMemoryTest, AnEmptyResultHasAPlaceOfItsOwn) {
  const auto memory = make(1 << 20);
  const uint64_t first = take(*memory, 0);
  const uint64_t second = take(*memory, 0);
  EXPECT_NE(first, second);
  memory->free(first);
  memory->free(second);
}

TEST_F(ResultMemoryTest, ExhaustionSaysHowMuchIsInUseAndWhatToDo) {
  const auto memory = make(8192);
  const uint64_t first = take(*memory, 4096);
  EXPECT_TRUE(is_error(memory->allocate(8000), StatusCode::ResourceExhausted,
                       {"8000", "4096", "8192", "client.arena_bytes_max"}));
  memory->free(first);
  EXPECT_TRUE(memory->allocate(8000).is_ok());
}

TEST_F(ResultMemoryTest, ReservesUpToTheEndWhereThatIsNoWholeNumberOfSteps) {
  const auto memory = make((4 << 20) + 4096);
  take(*memory, memory->size());
  memory->data()[memory->size() - 1] = 1;
}

TEST_F(ResultMemoryTest, MemoryComesLaterInSlices) {
  const uint64_t bytes = ResultMemory::kReserveSliceBytes + (8 << 20);
  const auto memory = make(bytes);
  std::vector<bool> has_all;
  memory->set_growth_callback([&](const Status& growth) {
    EXPECT_TRUE(growth.is_ok()) << growth.message();
    has_all.push_back(memory->has_memory(0, bytes));
  });
  const auto offset = memory->allocate(bytes);
  ASSERT_TRUE(offset.is_ok());
  EXPECT_FALSE(memory->has_memory(*offset, bytes));
  EXPECT_TRUE(has_all.empty());
  wait_for_memory(*memory, *offset, bytes);
  EXPECT_EQ(has_all, (std::vector<bool>{false, true}));
  memory->free(*offset);
  const auto again = memory->allocate(bytes);
  ASSERT_TRUE(again.is_ok());
  EXPECT_TRUE(memory->has_memory(*again, bytes));
}

// A kernel that takes long holds up no loop.
TEST_F(ResultMemoryTest, TheLoopGoesOnWhileMemoryIsReserved) {
  block();
  const auto memory = make(8 << 20);
  ASSERT_TRUE(memory->allocate(8 << 20).is_ok());
  int ticks = 0;
  Timer ticker(*loop_);
  ticker.start_repeating(1, [&] { ++ticks; });
  run_until([&] { return ticks > 3; });
  EXPECT_FALSE(memory->has_memory(0, 8 << 20));
  release_.set_value();
  wait_for_memory(*memory, 0, 8 << 20);
}

TEST_F(ResultMemoryTest, JobsTakeTurnsBySlices) {
  block();
  const auto large = make(2 * ResultMemory::kReserveSliceBytes);
  const auto small = make(4096);
  bool small_came_first = false;
  small->set_growth_callback(
      [&](const Status&) { small_came_first = !large->has_memory(0, large->size()); });
  ASSERT_TRUE(large->allocate(large->size()).is_ok());
  ASSERT_TRUE(small->allocate(4096).is_ok());
  release_.set_value();
  wait_for_memory(*large, 0, large->size());
  EXPECT_TRUE(small_came_first);
}

TEST_F(ResultMemoryTest, ThatThereIsNoMemoryIsSaidToo) {
  const auto memory = make(16 << 20);
  Status growth;
  memory->set_growth_callback([&](const Status& status) { growth = status; });
  read_only(*memory);
  EXPECT_TRUE(memory->allocate(16 << 20).is_ok());
  run_until([&] { return !growth.is_ok(); });
  EXPECT_EQ(growth.message().find("no memory for results: cannot get"), 0u) << growth.message();
  EXPECT_FALSE(memory->has_memory(0, 16 << 20));
  EXPECT_EQ(memory->allocate(1).status().message(), growth.message());
}

class KeptResultsTest : public ResultMemoryTest {
 protected:
  static constexpr uid_t kUser = 1000;

  // Whose two readers have 4 MiB.
  KeptResultsTest() : memory_(make(64 << 20)) {
    memory_->set_charge(UserCharge(quotas_, kUser, UserResource::ResultBytes));
    take(*memory_, 4 << 20);
    kept_ = Fd(::dup(memory_->fd_for_reader()));
    EXPECT_EQ(memory_->fd_for_reader(), readers_fd(*memory_));
  }
  uint64_t used(UserResource resource) const { return quotas_->used(kUser, resource); }

  const std::shared_ptr<UserQuotas> quotas_ =
      std::make_shared<UserQuotas>(UserLimits(), std::set<uid_t>());
  std::shared_ptr<ResultMemory> memory_;
  Fd kept_;
};

TEST_F(KeptResultsTest, WhoKeepsADescriptorKeepsNoPages) {
  memory_->on_reader_gone();
  EXPECT_EQ(pages_of(*memory_), 4u << 20) << "another one reads";
  memory_->on_reader_gone();
  EXPECT_EQ(used(UserResource::ResultBytes), 4u << 20);
  memory_.reset();
  settle();
  EXPECT_EQ(pages_of(kept_.get()), 0u);
  EXPECT_EQ(used(UserResource::ResultBytes), 0u);
  EXPECT_EQ(used(UserResource::LingeringBytes), 0u);
}

TEST_F(KeptResultsTest, WhatMayStillBeReadStaysAndCounts) {
  memory_->on_reader_gone();
  memory_.reset();
  settle();
  EXPECT_EQ(pages_of(kept_.get()), 4u << 20);
  EXPECT_EQ(used(UserResource::ResultBytes), 0u);
  EXPECT_EQ(used(UserResource::LingeringBytes), 4u << 20);
}

TEST_F(ResultMemoryTest, MayEndWhileMemoryIsReserved) {
  block();
  auto memory = make(8 << 20);
  bool was_told = false;
  memory->set_growth_callback([&](const Status&) { was_told = true; });
  ASSERT_TRUE(memory->allocate(8 << 20).is_ok());
  const Fd copy(::dup(memory->fd_for_reader()));
  memory.reset();
  release_.set_value();
  settle();
  EXPECT_FALSE(was_told);
}

TEST_F(ResultMemoryTest, ArenasAndResultsAreUnmappedOffTheLoop) {
  auto shared = SharedMemory::create("test", 8192, SharedMemory::Access::ReadOnly);
  ASSERT_TRUE(shared);
  auto arena = share_memory(std::move(*shared), worker_);
  struct stat made {};
  ASSERT_EQ(::fstat(arena->fd(), &made), 0);
  const auto is_open = [fd = arena->fd(), &made] {
    struct stat now {};  // of another file, once the number was used again
    return ::fstat(fd, &now) == 0 && now.st_ino == made.st_ino && now.st_dev == made.st_dev;
  };
  auto memory = ResultMemory::create(worker_, "train", 8192, {arena});
  ASSERT_TRUE(memory.is_ok());
  block();
  arena.reset();
  *memory = nullptr;
  EXPECT_TRUE(is_open()) << "it was closed here";
  release_.set_value();
  settle();
  EXPECT_FALSE(is_open());
}

TEST_F(ResultMemoryTest, AnImpossibleSizeIsAnErrorThatNamesTheJob) {
  const auto memory = ResultMemory::create(worker_, "train", 0, {});
  ASSERT_FALSE(memory.is_ok());
  EXPECT_NE(memory.status().message().find("job 'train'"), std::string::npos);
}

using ResultMemoryDeathTest = ResultMemoryTest;

TEST_F(ResultMemoryDeathTest, FreeingTwiceIsABug) {
  const auto memory = make(8192);
  const uint64_t extent = take(*memory, 10);
  memory->free(extent);
  EXPECT_DEATH(memory->free(extent), "an extent is freed once");
}

TEST_F(ResultMemoryTest, ItsUserPaysBeforeTheKernelIsAsked) {
  const auto quotas = quotas_of(8 << 20);
  const auto used = [&] { return quotas->used(1000, UserResource::ResultBytes); };
  {
    const auto memory = make(1ull << 30);
    memory->set_charge(UserCharge(quotas, 1000, UserResource::ResultBytes));
    ASSERT_TRUE(memory->allocate(6 << 20).is_ok());
    EXPECT_EQ(used(), 8u << 20);  // in steps
    ASSERT_TRUE(memory->allocate(1 << 20).is_ok());
    EXPECT_TRUE(is_error(memory->allocate(2 << 20), StatusCode::ResourceExhausted,
                         {"client.user_result_bytes_max"}));
    EXPECT_EQ(used(), 8u << 20);
    EXPECT_TRUE(memory->allocate(1 << 20).is_ok());  // what fits goes on
    EXPECT_EQ(used(), 8u << 20);
  }
  EXPECT_EQ(used(), 0u);
}

constexpr uint32_t kPatience = MemoryBlocks::kFirstPatienceRounds;

TEST_F(ResultMemoryTest, WhatNobodyHasUsedForSomeRoundsGoesBackToTheKernel) {
  const auto memory = make(1ull << 30);
  const uint64_t offset = take(*memory, 200 * kMiB);
  EXPECT_EQ(pages_of(*memory), 200 * kMiB);
  pass_rounds(*memory, 2 * kPatience);
  EXPECT_EQ(pages_of(*memory), 200 * kMiB) << "it is in use";
  memory->free(offset);
  pass_rounds(*memory, kPatience - 1);
  EXPECT_EQ(pages_of(*memory), 200 * kMiB);
  EXPECT_TRUE(memory->may_give_back());
  memory->pass_round();
  run_until([&] { return pages_of(*memory) == ResultMemory::kKeptBytes; });
  settle();
  EXPECT_EQ(memory->reserved_bytes(), ResultMemory::kKeptBytes);
  EXPECT_FALSE(memory->pass_round()) << "the rest stays";
}

TEST_F(ResultMemoryTest, WhatWentBackIsReservedAgainBeforeItIsUsed) {
  const auto memory = make(1ull << 30);
  memory->free(take(*memory, 100 * kMiB));
  pass_rounds(*memory, kPatience);
  EXPECT_EQ(memory->reserved_bytes(), ResultMemory::kKeptBytes);
  const auto again = memory->allocate(100 * kMiB);
  ASSERT_TRUE(again.is_ok());
  EXPECT_FALSE(memory->has_memory(*again, 100 * kMiB));
  wait_for_memory(*memory, *again, 100 * kMiB);
  EXPECT_EQ(pages_of(*memory), 100 * kMiB);
}

TEST_F(ResultMemoryTest, WhatIsUsedWhileItGoesIsReservedAfterwards) {
  const auto memory = make(1ull << 30);
  memory->free(take(*memory, 60 * kMiB));
  pass_rounds(*memory, kPatience - 1);
  block();
  memory->pass_round();
  const auto again = memory->allocate(60 * kMiB);
  ASSERT_TRUE(again.is_ok());
  EXPECT_FALSE(memory->has_memory(*again, 60 * kMiB));
  EXPECT_EQ(memory->reserved_bytes(), 60 * kMiB);
  release_.set_value();
  wait_for_memory(*memory, *again, 60 * kMiB);
  EXPECT_EQ(pages_of(*memory), 60 * kMiB);
  settle();
  EXPECT_EQ(memory->reserved_bytes(), 60 * kMiB);
}

TEST_F(ResultMemoryTest, WhatASteadyLoopUsesStays) {
  const auto memory = make(1ull << 30);
  memory->free(take(*memory, 200 * kMiB));  // a broadcast before it
  for (int step = 0; step < 20; ++step) {
    const uint64_t first = take(*memory, 30 * kMiB);
    const uint64_t second = take(*memory, 10 * kMiB);
    memory->free(first);
    memory->free(second);
    pass_rounds(*memory, 1);
    EXPECT_GE(pages_of(*memory), 40 * kMiB);
    if (step <= 2 * static_cast<int>(kPatience)) continue;
    EXPECT_EQ(pages_of(*memory), 40 * kMiB);
    EXPECT_TRUE(memory->has_memory(0, 40 * kMiB));
  }
}

TEST_F(ResultMemoryTest, TheUserPaysForWhatIsThere) {
  const auto quotas = quotas_of(100 * kMiB);
  const auto used = [&] { return quotas->used(1000, UserResource::ResultBytes); };
  const auto memory = make(1ull << 30);
  memory->set_charge(UserCharge(quotas, 1000, UserResource::ResultBytes));
  memory->free(take(*memory, 100 * kMiB));
  EXPECT_EQ(used(), 100 * kMiB);
  pass_rounds(*memory, kPatience);
  EXPECT_EQ(used(), ResultMemory::kKeptBytes);
  EXPECT_EQ(quotas->result_bytes(), ResultMemory::kKeptBytes);
  const auto other = make(1ull << 30);
  other->set_charge(UserCharge(quotas, 1000, UserResource::ResultBytes));
  ASSERT_TRUE(other->allocate(80 * kMiB).is_ok());
  EXPECT_TRUE(is_error(memory->allocate(40 * kMiB), StatusCode::ResourceExhausted));
  EXPECT_EQ(used(), 80 * kMiB + ResultMemory::kKeptBytes);
  EXPECT_TRUE(memory->allocate(ResultMemory::kKeptBytes).is_ok());
}

TEST_F(ResultMemoryTest, MayEndWhileMemoryGoesBack) {
  auto memory = make(1ull << 30);
  memory->free(take(*memory, 60 * kMiB));
  pass_rounds(*memory, kPatience - 1);
  block();
  memory->pass_round();
  memory.reset();
  release_.set_value();
  settle();
}

TEST_F(ResultMemoryTest, WhatTheKernelDoesNotTakeBackStays) {
  const auto memory = make(1ull << 30);
  const uint64_t offset = take(*memory, 60 * kMiB);
  memory->free(offset);
  read_only(*memory);
  pass_rounds(*memory, kPatience);
  EXPECT_TRUE(memory->has_memory(offset, 60 * kMiB));
  EXPECT_EQ(memory->reserved_bytes(), 60 * kMiB);
  EXPECT_FALSE(memory->may_give_back());
}

}  // namespace
}  // namespace braid
