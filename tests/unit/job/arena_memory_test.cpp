// SPDX-License-Identifier: Apache-2.0
#include "job/arena_memory.h"

#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "loop/loop_testing.h"

namespace braid {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kArenaPages = 16;
constexpr uid_t kOwner = 1000;

class ArenaMemoryTest : public testing::LoopTest {
 protected:
  void TearDown() override { release(); }
  // The thread does nothing more until release().
  void block() {
    thread_->post([wait = released_.get_future().share()] { wait.wait(); });
  }
  void release() {
    if (!std::exchange(is_released_, true)) released_.set_value();
  }
  // Another arena of this rank, of which so many pages were written.
  SharedMemory& add(size_t local_rank, size_t pages) {
    auto arena =
        SharedMemory::create_input("test", kArenaPages * kPage, SharedMemory::Holes::Possible);
    EXPECT_TRUE(arena) << arena.status().message();
    arenas_.push_back(std::make_shared<SharedMemory>(std::move(*arena)));
    std::fill_n(arenas_.back()->data(), pages * kPage, uint8_t{1});
    auto list = of_ranks_[local_rank] == nullptr ? InputArenas::List() : *of_ranks_[local_rank];
    list.push_back(arenas_.back());
    of_ranks_[local_rank] = std::make_shared<const InputArenas::List>(std::move(list));
    return *arenas_.back();
  }
  void look_and_wait() {
    const size_t before = looked_.size();
    memory_->look();
    run_until([&] { return looked_.size() > before; });
  }

  std::optional<WorkThread> thread_{std::in_place, *loop_, "work"};
  std::optional<UserWork> work_{std::in_place, *loop_, *thread_};
  std::vector<std::shared_ptr<SharedMemory>> arenas_;
  ArenaMemory::OfRanks of_ranks_{nullptr, nullptr};
  std::vector<uint64_t> looked_;
  std::optional<ArenaMemory> memory_{std::in_place, *work_, kOwner, [this] { return of_ranks_; },
                                     [this](uint64_t bytes) { looked_.push_back(bytes); }};
  std::promise<void> released_;
  bool is_released_ = false;
};

TEST_F(ArenaMemoryTest, TellsOfEachRankAndOfAll) {
  add(0, 1);
  add(0, 2);
  add(1, 4);
  EXPECT_EQ(memory_->bytes_of(0), 0u) << "nobody has looked";
  look_and_wait();
  EXPECT_EQ(memory_->bytes_of(0), 3 * kPage);
  EXPECT_EQ(memory_->bytes_of(1), 4 * kPage);
  EXPECT_EQ(memory_->bytes_of(2), 0u) << "there is no such rank";
  EXPECT_EQ(looked_, std::vector<uint64_t>{7 * kPage});
}

TEST_F(ArenaMemoryTest, ARankThatHasGoneHasNone) {
  add(0, 1);
  add(1, 4);
  look_and_wait();
  of_ranks_[1] = nullptr;
  look_and_wait();
  EXPECT_EQ(memory_->bytes_of(1), 0u);
  EXPECT_EQ(looked_.back(), kPage);
}

TEST_F(ArenaMemoryTest, TheLoopAsksForNothing) {
  add(0, 1);
  block();
  memory_->look();
  run_rounds();
  EXPECT_TRUE(looked_.empty()) << "only the thread asks the kernel";
  release();
  run_until([&] { return !looked_.empty(); });
  EXPECT_EQ(memory_->bytes_of(0), kPage);
}

TEST_F(ArenaMemoryTest, AskedManyTimesItLooksOnceMore) {
  add(0, 1);
  block();
  for (int i = 0; i < 100; ++i) memory_->look();
  add(0, 2);  // after the first look has taken the list
  release();
  run_until([&] { return looked_.size() == 2; });
  EXPECT_EQ(looked_, (std::vector<uint64_t>{kPage, 3 * kPage}));
  run_rounds();
  EXPECT_EQ(looked_.size(), 2u);
}

TEST_F(ArenaMemoryTest, TellsNothingAnyMoreAtItsEnd) {
  add(0, 1);
  block();
  memory_->look();
  memory_.reset();
  release();
  bool is_next_done = false;
  work_->run(
      kOwner, this, [] {}, [&] { is_next_done = true; });
  run_until([&] { return is_next_done; });
  EXPECT_TRUE(looked_.empty());
}

}  // namespace
}  // namespace braid
