// SPDX-License-Identifier: Apache-2.0
#include "web/shared_answers.h"

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint32_t kFreshMs = 1000, kAskersMax = 6;

class SetClock final : public Clock {
 public:
  uint64_t now_ns() const override { return now_ns_; }
  void advance_ms(uint64_t ms) { now_ns_ += ms * 1'000'000; }

 private:
  std::atomic<uint64_t> now_ns_{1};
};

class SharedAnswersTest : public ::testing::Test {
 protected:
  std::string ask(const std::string& key) {
    const WebReply reply =
        answers_.ask(key, [this] { return text_reply(200, std::to_string(++made_)); });
    return reply.status == 200 ? *reply.body : std::to_string(reply.status);
  }

  SetClock clock_;
  SharedAnswers answers_{clock_, kFreshMs, kAskersMax};
  std::atomic<int> made_{0};
};

TEST_F(SharedAnswersTest, AnAnswerHoldsForAWhile) {
  EXPECT_EQ(ask("a"), "1\n");
  EXPECT_EQ(ask("a"), "1\n");
  EXPECT_EQ(ask("b"), "2\n");
  clock_.advance_ms(kFreshMs - 1);
  EXPECT_EQ(ask("a"), "1\n");
  clock_.advance_ms(1);
  EXPECT_EQ(ask("a"), "3\n");
}

TEST_F(SharedAnswersTest, WhatIsBeingMadeIsMadeOnceForAllWhoAsk) {
  std::latch is_asked(1), may_answer(1);
  std::vector<std::thread> askers;
  std::atomic<int> same = 0;
  const auto make = [&] {
    ++made_;
    is_asked.count_down();
    may_answer.wait();
    return text_reply(200, "one");
  };
  askers.emplace_back([&] { answers_.ask("a", make); });
  is_asked.wait();
  for (uint32_t i = 1; i < kAskersMax; ++i) {
    askers.emplace_back([&] {
      if (*answers_.ask("a", make).body == "one\n") ++same;
    });
  }
  may_answer.count_down();
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(same, static_cast<int>(kAskersMax) - 1);
}

TEST_F(SharedAnswersTest, MoreThanThereAreThreadsForAreRefused) {
  std::latch are_asked(kAskersMax), may_answer(1);
  std::vector<std::thread> askers;
  for (uint32_t i = 0; i < kAskersMax; ++i) {
    askers.emplace_back([&, key = std::to_string(i)] {
      answers_.ask(key, [&] {
        are_asked.count_down();
        may_answer.wait();
        return text_reply(200, "");
      });
    });
  }
  are_asked.wait();
  EXPECT_EQ(ask("another"), "503");
  EXPECT_EQ(ask("0"), "503");
  may_answer.count_down();
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(ask("another"), "1\n");
}

TEST_F(SharedAnswersTest, SoManyDifferentOnesHold) {
  for (size_t i = 0; i < SharedAnswers::kAnswersMax; ++i)
    EXPECT_NE(ask(std::to_string(i)), "503") << i;
  EXPECT_EQ(ask("one more"), "503");
  EXPECT_EQ(ask("0"), "1\n");  // those that hold are still told
  clock_.advance_ms(kFreshMs);
  EXPECT_NE(ask("one more"), "503");
}

}  // namespace
}  // namespace braid
