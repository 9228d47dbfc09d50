// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_worker_maker.h"

#include <utility>

#include "loop_testing.h"

namespace braid {
namespace {

constexpr Sha256Digest kMadeWithKey{1};

class UcxWorkerMakerTest : public testing::LoopTest {
 protected:
  using Made = UcxWorkerMaker::Made;

  void make(const void* owner, std::shared_ptr<UcxContext> context) {
    maker_->make(owner, std::move(context), kMadeWithKey, std::nullopt,
                 [this](Made made) { made_.push_back(std::move(made)); });
  }
  // Workers hold on to their context; so does the test.
  size_t workers() const { return static_cast<size_t>(context_.use_count()) - 1; }
  void wait_for_all() {
    bool is_done = false;
    maker_->after_all([&] { is_done = true; });
    run_until([&] { return is_done; });
    run_rounds();  // what was made before is taken in paced tasks
  }

  const std::shared_ptr<UcxContext> context_ =
      std::move(UcxContext::create({"lo", {"tcp"}, 128 << 10})).value();
  std::atomic<uint64_t> strangers_ = 0;
  std::optional<PacedTasks> paced_{*loop_};
  std::optional<UcxWorkerMaker> maker_{std::in_place, *loop_, *paced_, strangers_};
  std::vector<Made> made_;
};

TEST_F(UcxWorkerMakerTest, GivesTheLoopWorkersThatWork) {
  make(this, context_);
  make(this, context_);
  EXPECT_TRUE(made_.empty()) << "never from within the call";
  run_until([&] { return made_.size() == 2; });
  for (const Made& made : made_) {
    ASSERT_TRUE(made) << made.status().to_string();
    EXPECT_FALSE(made->worker->address().empty());
    while (made->worker->progress() > 0) {
    }
    EXPECT_TRUE(made->worker->arm());
  }
  EXPECT_NE(made_[0]->worker->address(), made_[1]->worker->address());
}

TEST_F(UcxWorkerMakerTest, ConnectsWorkers) {
  make(this, context_);
  run_until([&] { return made_.size() == 1; });
  const std::vector<uint8_t> address = made_[0]->worker->address();
  // As an incoming flow's, and as an outgoing flow's.
  const auto take = [this](Made made) { made_.push_back(std::move(made)); };
  maker_->make(this, context_, kMadeWithKey, address, take);
  run_until([&] { return made_.size() == 2; });
  ASSERT_TRUE(made_[1]) << made_[1].status().to_string();
  EXPECT_NE(made_[1]->endpoint, nullptr);
  maker_->connect(this, std::move(made_[0]->worker), made_[1]->worker->address(), take);
  EXPECT_EQ(made_.size(), 2u) << "never from within the call";
  run_until([&] { return made_.size() == 3; });
  ASSERT_TRUE(made_[2]) << made_[2].status().to_string();
  EXPECT_EQ(made_[2]->worker->address(), address);
  EXPECT_NE(made_[2]->endpoint, nullptr);
}

TEST_F(UcxWorkerMakerTest, AWorkerThatCannotBeConnectedIsGone) {
  make(this, context_);
  run_until([&] { return made_.size() == 1; });
  maker_->connect(this, std::move(made_[0]->worker), {0xff},
                  [this](Made made) { made_.push_back(std::move(made)); });
  run_until([&] { return made_.size() == 2; });
  EXPECT_EQ(made_[1].status().code(), StatusCode::Protocol);
  EXPECT_EQ(workers(), 0u);
  // What a peer says may be anything, also nothing.
  maker_->make(this, context_, kMadeWithKey, std::vector<uint8_t>(),
               [this](Made made) { made_.push_back(std::move(made)); });
  run_until([&] { return made_.size() == 3; });
  EXPECT_EQ(made_[2].status().code(), StatusCode::Protocol);
  EXPECT_EQ(workers(), 0u);
}

TEST_F(UcxWorkerMakerTest, SaysWhyThereIsNone) {
  make(this, nullptr);
  EXPECT_TRUE(made_.empty()) << "never from within the call";
  run_until([&] { return !made_.empty(); });
  EXPECT_EQ(made_.front().status().code(), StatusCode::Unavailable);
}

TEST_F(UcxWorkerMakerTest, WhatIsDestroyedIsGoneWhenItSaysSo) {
  make(this, context_);
  make(this, context_);
  run_until([&] { return made_.size() == 2; });
  EXPECT_EQ(workers(), 2u);
  for (Made& made : made_) maker_->destroy(std::move(*made));
  wait_for_all();
  EXPECT_EQ(workers(), 0u);
}

TEST_F(UcxWorkerMakerTest, WhoWasDroppedGetsNoWorkerAndItIsDestroyed) {
  const int other = 0;
  make(this, context_);
  make(&other, context_);
  maker_->drop(this);
  run_until([&] { return made_.size() == 1; });
  wait_for_all();
  EXPECT_EQ(made_.size(), 1u);
  EXPECT_EQ(workers(), 1u);
}

TEST_F(UcxWorkerMakerTest, LeavesNothingBehindWhenItGoesEarly) {
  for (int i = 0; i < 5; ++i) make(this, context_);
  maker_.reset();
  paced_.reset();
  EXPECT_TRUE(made_.empty());
  EXPECT_EQ(workers(), 0u);
}

}  // namespace
}  // namespace braid
