// SPDX-License-Identifier: Apache-2.0
#include "loop/loop_questions.h"

#include <thread>
#include <vector>

#include "loop_testing.h"

namespace braid {
namespace {

constexpr uint32_t kLongMs = 120'000, kShortMs = 1;

class LoopQuestionsTest : public testing::LoopTest {
 protected:
  using Reply = LoopQuestions::Reply<int>;

  // Asks on a thread of its own, until join().
  void ask(LoopQuestions::Question<int> question, uint32_t timeout_ms = kLongMs) {
    threads_.emplace_back([this, question = std::move(question), timeout_ms] {
      auto answer = questions_.ask<int>(question, timeout_ms);
      const std::lock_guard lock(mutex_);
      answers_.push_back(std::move(answer));
    });
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  size_t answered() {
    const std::lock_guard lock(mutex_);
    return answers_.size();
  }

  LoopQuestions questions_{*loop_};
  std::mutex mutex_;
  std::vector<Result<int>> answers_;
  std::vector<std::thread> threads_;
};

TEST_F(LoopQuestionsTest, TheLoopAnswers) {
  ask([this](const Reply& reply) { reply(loop_->is_in_loop() ? 7 : 0); });
  run_until([this] { return answered() == 1; });
  join();
  EXPECT_EQ(answers_.front().value(), 7);
}

TEST_F(LoopQuestionsTest, TheAnswerMayComeLater) {
  std::optional<Reply> waiting;
  ask([&](Reply reply) { waiting = std::move(reply); });
  run_until([&] { return waiting.has_value(); });
  EXPECT_EQ(answered(), 0u);
  (*waiting)(8);
  join();
  EXPECT_EQ(answers_.front().value(), 8);
}

TEST_F(LoopQuestionsTest, ALoopThatDoesNotRunIsNotAwaitedForEver) {
  ask([](const Reply& reply) { reply(1); }, kShortMs);
  join();
  EXPECT_EQ(answers_.front().status().code(), StatusCode::DeadlineExceeded);
  EXPECT_EQ(answers_.front().status().message(), "the control loop has not answered within 1 ms");
  run_rounds();  // the answer comes to nobody
}

TEST_F(LoopQuestionsTest, ALoopThatHangsIsAskedSoManyThingsAlone) {
  int asked = 0;
  for (uint32_t i = 0; i < LoopQuestions::kOpenMax; ++i)
    ask(
        [&](const Reply& reply) {
          ++asked;
          reply(1);
        },
        kShortMs);
  join();
  ask([&](const Reply&) { ++asked; });
  join();
  EXPECT_EQ(answers_.back().status().code(), StatusCode::Unavailable);
  run_rounds();
  EXPECT_EQ(asked, static_cast<int>(LoopQuestions::kOpenMax));
  ask([](const Reply& reply) { reply(2); });
  run_until([this] { return answered() == LoopQuestions::kOpenMax + 2; });
  join();
  EXPECT_EQ(answers_.back().value(), 2);
}

TEST_F(LoopQuestionsTest, WhoWaitsGoesWhenItCloses) {
  std::optional<Reply> waiting;
  ask([&](Reply reply) { waiting = std::move(reply); });
  run_until([&] { return waiting.has_value(); });
  questions_.close();
  join();
  EXPECT_EQ(answers_.front().status().code(), StatusCode::Unavailable);
  ask([](const Reply& reply) { reply(1); });
  join();
  EXPECT_EQ(answers_.back().status().code(), StatusCode::Unavailable);
}

}  // namespace
}  // namespace braid
